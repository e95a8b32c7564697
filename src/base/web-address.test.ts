import { expect, test } from 'vitest';

import { isLinkLocal, readWebAddress } from './web-address.ts';

test('HTTP and HTTPS addresses are accepted, with any port, path and user', () => {
  expect(readWebAddress('https://example.com/hook?x=1')).toEqual({
    ok: true,
    value: { scheme: 'https', host: 'example.com' },
  });
  expect(readWebAddress('http://127.0.0.1:8080')).toEqual({ ok: true, value: { scheme: 'http', host: '127.0.0.1' } });
  expect(readWebAddress('HTTP://u:p@[::1]:80/a')).toEqual({ ok: true, value: { scheme: 'http', host: '::1' } });
});

test('everything else is refused, with the reason', () => {
  const reasons = ['example.com', 'https://', 'ftp://example.com/', 'file:///etc/passwd', 'http://169.254.169.254/x'];
  expect(reasons.map(readWebAddress)).toEqual([
    { ok: false, error: 'is not a URL' },
    { ok: false, error: 'is not a URL' },
    { ok: false, error: 'has the scheme ftp, not http or https' },
    { ok: false, error: 'has the scheme file, not http or https' },
    { ok: false, error: 'leads to a link-local address' },
  ]);
});

test.each([
  '169.254.0.1',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '0:0:0:0:0:ffff:a9fe:a9fe',
  '64:ff9b::a9fe:a9fe',
  'fe80::1%eth0',
  'febf::1',
  '2852039166',
  '0xa9fea9fe',
  '0xa9.0376.43518',
  '169.254.1',
])('%s is link-local', (address) => {
  expect(isLinkLocal(address)).toBe(true);
});

test.each(['127.0.0.1', '169.253.255.255', '::1', 'fec0::1', 'fe00::1', '::ffff:10.0.0.1', 'a9fe.example', 'fe80.org'])(
  '%s is not',
  (address) => {
    expect(isLinkLocal(address)).toBe(false);
  },
);
