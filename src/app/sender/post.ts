// Sends a request over HTTP to an address of the configuration.
//
//   post/1  Only to http and https, and never to a link-local address, also if a name resolves to one.
//   post/2  Redirects are not followed.
//   post/3  It has succeeded only when the whole response has arrived in time, with a status from 200 to 299.

import { lookup, type LookupAddress } from 'node:dns';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';

import { err, ok, type Result } from '../../base/errors.ts';
import { isLinkLocal, readWebAddress } from '../../base/web-address.ts';

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** An error is a part of a sentence. Rejects never. */
export function post({ url, headers, body }: Post, timeoutMs: number): Promise<Result<void, string>> {
  const address = readWebAddress(url);
  if (!address.ok) return Promise.resolve(err(`the address ${address.error}`));
  const request = address.value.scheme === 'https' ? requestHttps : requestHttp;
  const bytes = Buffer.from(body);
  return new Promise((resolve) => {
    const length = { 'content-length': String(bytes.length) };
    const options = {
      method: 'POST',
      headers: { ...headers, ...length },
      lookup: guardedLookup,
      agent: false,
    } as const;
    const call = attempt(() => {
      const target = new URL(url);
      // It knows more ways to write an address.
      if (isLinkLocal(target.hostname.replaceAll(/^\[|\]$/g, '')))
        throw new RangeError('it leads to a link-local address');
      return request(target, options);
    });
    if (!call.ok) return resolve(call);
    const sent = call.value;
    const end = (result: Result<void, string>): void => {
      clearTimeout(deadline);
      resolve(result);
      sent.destroy();
    };
    const deadline = setTimeout(() => end(err(`no answer within ${Math.round(timeoutMs / 1_000)} s`)), timeoutMs);
    sent.on('error', (error) => end(err(error.message)));
    sent.on('response', (response) => {
      const { statusCode: status = 0 } = response;
      response.on('error', (error) => end(err(error.message)));
      response.on('close', () => end(err('the connection was closed in the middle of the answer')));
      response.on('end', () => {
        if (status >= 200 && status < 300) return end(ok(undefined));
        end(err(status >= 300 && status < 400 ? `status ${status}: redirects are refused` : `status ${status}`));
      });
      response.resume();
    });
    sent.end(bytes);
  });
}

/** Node refuses some addresses and headers by throwing. */
function attempt<T>(make: () => T): Result<T, string> {
  try {
    return ok(make());
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return err(error.message);
    throw error;
  }
}

/** post/1 */
const guardedLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses: readonly LookupAddress[]) => {
    if (error !== null) return callback(error, '');
    const [first] = addresses;
    if (first === undefined || addresses.some(({ address }) => isLinkLocal(address)))
      return callback(new Error(`${hostname} resolves to a link-local address`), '');
    if (options.all === true) return callback(null, [...addresses]);
    callback(null, first.address, first.family);
  });
};
