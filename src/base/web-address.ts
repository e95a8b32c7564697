// Addresses that MEOW may send something to: HTTP and HTTPS, but no link-local address, behind which clouds keep credentials.

import { err, ok, type Result } from './errors.ts';

export interface WebAddress {
  readonly scheme: 'http' | 'https';
  /** Without port; an IPv6 address without brackets. */
  readonly host: string;
}

/** An error is a part of a sentence: why the text is refused. The host may still resolve to an address that is refused. */
export function readWebAddress(text: string): Result<WebAddress, string> {
  const [, scheme = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(\S*)$/.exec(text) ?? [];
  if (scheme === '') return err('is not a URL');
  const known = (['http', 'https'] as const).find((each) => each === scheme.toLowerCase());
  if (known === undefined) return err(`has the scheme ${scheme}, not http or https`);
  const [, host = ''] = /^(?:[^/?#\\@]*@)?(\[[^\]]*\]|[^/?#\\@:]+)(?::\d{1,5})?(?:[/?#].*)?$/.exec(rest) ?? [];
  if (host === '') return err('is not a URL');
  const plain = host.replaceAll(/^\[|\]$/g, '').toLowerCase();
  if (isLinkLocal(plain)) return err('leads to a link-local address');
  return ok({ scheme: known, host: plain });
}

/** Of IPv4 and IPv6, as a resolver or a person writes it; also if the one is written as the other. */
export function isLinkLocal(address: string): boolean {
  const [bare = ''] = address.toLowerCase().split('%');
  if (/^fe[89ab][0-9a-f]?(?::|$)/.test(bare)) return true;
  const four = /^(?:::(?:ffff:(?:0:)?)?|64:ff9b::|0(?::0){4}:(?:0|ffff):)?(\d+(?:\.\d+){3})$/.exec(bare)?.[1];
  if (four !== undefined) return four.startsWith('169.254.');
  if (/^(?:::(?:ffff:(?:0:)?)?|64:ff9b::|0(?::0){4}:(?:0|ffff):)a9fe:[0-9a-f]{1,4}$/.test(bare)) return true;
  return isNumericLinkLocal(bare);
}

/** `2852039166`, `0xa9fea9fe`, `169.16689662`: forms of IPv4 that resolvers accept. */
function isNumericLinkLocal(text: string): boolean {
  const parts = text.split('.');
  if (parts.length > 4 || !parts.every((part) => /^(?:0x[0-9a-f]+|\d+)$/.test(part))) return false;
  const numbers = parts.map((part) => (/^0\d/.test(part) ? Number.parseInt(part, 8) : Number(part)));
  const last = numbers.pop() ?? 0;
  const value = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
  return Math.floor(value / 65_536) === 169 * 256 + 254;
}
