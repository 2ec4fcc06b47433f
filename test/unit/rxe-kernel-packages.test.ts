import { describe, expect, test } from 'vitest';

import { concreteImage, downloadError, parsePackages, type DebianPackage } from '../../lib/rxe/debian.js';
import { isCompileStep, lostOptions } from '../../lib/rxe/kernel/build.js';
import { compareReleases } from '../../lib/rxe/kernel/release.js';

const metaRecord = `Package: linux-image-amd64
Source: linux-signed-amd64 (6.1.5+1)
Version: 6.1.5-1
Installed-Size: 13
Depends: linux-image-6.1.0-9-amd64 (= 6.1.5-1), kmod | module-init-tools, debconf:any
Size: 1476
`;

function packageThatNeeds(...dependsOn: string[]): DebianPackage {
  return { name: 'linux-image-amd64', version: '1', dependsOn, size: 0, installedSize: 0 };
}

describe('package records', () => {
  test('are read with sizes in bytes and dependencies by name', () => {
    expect(parsePackages(metaRecord)).toEqual([
      {
        name: 'linux-image-amd64',
        version: '6.1.5-1',
        dependsOn: ['linux-image-6.1.0-9-amd64', 'kmod', 'debconf'],
        size: 1476,
        installedSize: 13 * 1024,
      },
    ]);
  });

  test('one for each paragraph', () => {
    const text = `${metaRecord}\nPackage: other\nVersion: 2\n\n`;
    expect(parsePackages(text).map(({ name }) => name)).toEqual(['linux-image-amd64', 'other']);
  });
});

describe('the image behind a package', () => {
  test.each([
    [['linux-image-6.1.0-9-amd64'], 'linux-image-6.1.0-9-amd64'],
    [['linux-base', 'linux-image-6.12.3+deb12-amd64'], 'linux-image-6.12.3+deb12-amd64'],
    [['linux-image-6.1.0-9-amd64-dbg', 'linux-image-6.1.0-9-amd64'], 'linux-image-6.1.0-9-amd64'],
    [['linux-image-6.1.0-9-amd64-unsigned', 'linux-image-6.1.0-9-amd64'], 'linux-image-6.1.0-9-amd64'],
    [['kmod', 'linux-base', 'initramfs-tools'], 'linux-image-amd64'],
  ])('of one that depends on %j is %s', (dependsOn, image) => {
    expect(concreteImage(packageThatNeeds(...dependsOn))).toBe(image);
  });
});

describe('failed downloads', () => {
  test('a name that does not resolve is a matter of the network', () => {
    const stderr = "E: Failed to fetch http://example/x.deb  Temporary failure resolving 'example'";
    expect(downloadError('linux-image-amd64', { stdout: '', stderr })).toMatchObject({
      code: 'ERR_RXE_DOWNLOAD',
      message: /^cannot fetch linux-image-amd64: no connection.*Temporary failure resolving.*--kernel$/,
    });
  });

  test('a full disk is not', () => {
    const stderr = 'E: Failed to fetch x  Error writing to file - write (28: No space left on device)';
    expect(downloadError('x', { stdout: '', stderr })).toMatchObject({ code: 'ERR_RXE_NO_SPACE' });
  });

  test('anything else is passed on in the words of apt', () => {
    expect(downloadError('x', { stdout: '', stderr: 'E: The repository is not signed.\n' }).message).toBe(
      'cannot fetch x: E: The repository is not signed.',
    );
  });
});

test('releases compare by number', () => {
  const releases = ['6.1.0-9-amd64', '6.12.3+deb12-amd64', '6.1.0-57-amd64', '6.1.192-rxe'];
  expect(releases.sort(compareReleases)).toEqual([
    '6.1.0-9-amd64',
    '6.1.0-57-amd64',
    '6.1.192-rxe',
    '6.12.3+deb12-amd64',
  ]);
});

test('options that a kernel did not take are found', () => {
  const fragment = '# a comment\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_C="x"\n# CONFIG_D is not set\n';
  expect(lostOptions(fragment, 'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C="y"\n')).toEqual([
    'CONFIG_B',
    'CONFIG_C',
  ]);
});

test('compile steps are told from the rest of what make says', () => {
  const lines = [
    '  CC      net/core/dev.o',
    '  LD      linux',
    '  CALL    scripts/checksyscalls.sh',
    'make[1]: x',
  ];
  expect(lines.map(isCompileStep)).toEqual([true, true, false, false]);
});
