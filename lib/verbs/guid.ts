/** A GUID as the tools of this field show it: `5054:00ff:fe12:3456`. */
export function formatGuid(guid: bigint): string {
  return guid
    .toString(16)
    .padStart(16, '0')
    .replace(/(.{4})(?=.)/g, '$1:');
}
