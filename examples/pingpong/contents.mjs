// What messages hold.

const PAGE_BYTES = 4096;
/** The C programs start with it. */
const PLAIN_BYTE = 0x7b;
/** Another one, so that the answer of a C program proves that our question has arrived there. */
const CHECKED_BYTE = 0x5a;

/** Where nobody looks. */
export function plainContents(size) {
  return Buffer.alloc(size, PLAIN_BYTE);
}

/** Where it is checked: 0 at the start of every page, which is what the C programs look at, another byte all over. */
export function checkedContents(size, byte = CHECKED_BYTE) {
  const bytes = Buffer.alloc(size, byte);
  for (let at = 0; at < size; at += PAGE_BYTES) bytes[at] = 0;
  return bytes;
}

/** @throws Error that names the first wrong byte of what the server has sent back */
export function checkAnswer(message) {
  compare(message, checkedContents(message.length));
}

/** For a server, which takes any byte. @throws as {@link checkAnswer} */
export function checkQuestion(message) {
  compare(message, checkedContents(message.length, message[1]));
}

function compare(message, expected) {
  const at = message.findIndex((byte, i) => byte !== expected[i]);
  if (at < 0) return;
  throw new Error(
    `invalid data: byte ${at} of a message is ${message[at]} instead of ${expected[at]} (does the client have -c too?)`,
  );
}
