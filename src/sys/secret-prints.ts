// Fingerprints of secrets: by them a process finds secrets that it does not know, such as `meow logs` in another terminal.
//
// prints/1  A fingerprint tells nothing without the key, which is private to its user and never leaves the machine.
// prints/2  They are of bytes, so that they find a secret in a log of any encoding.

import { createHmac } from 'node:crypto';

import { hashOf, type SearchedForm } from './secret-forms.ts';
import { latin1 } from './secrets.ts';

export interface SecretPrint {
  readonly name: string;
  readonly form: string;
  /** In bytes. */
  readonly length: number;
  /** Of the first bytes; depends on the key. */
  readonly hash: number;
  readonly hasLineEnd: boolean;
  readonly mac: string;
}

export function printsOf(
  secrets: ReadonlyMap<string, ReadonlyMap<string, string>>,
  key: Buffer,
): readonly SecretPrint[] {
  const factor = factorOf(key);
  return [...secrets].flatMap(([name, forms]) =>
    [...forms].map(([form, text]) => {
      const bytes = latin1(text);
      const hash = hashOf(bytes, factor);
      return { name, form, length: bytes.length, hash, hasLineEnd: bytes.includes('\n'), mac: macOf(bytes, key) };
    }),
  );
}

export function searchedPrint(print: SecretPrint, key: Buffer): SearchedForm {
  const { length, mac } = print;
  return { ...print, isAt: (text, start) => macOf(text.slice(start, start + length), key) === mac };
}

/** Odd, so that no byte is lost. */
export function factorOf(key: Buffer): number {
  return (key.readUInt32LE(0) | 1) >>> 0;
}

function macOf(bytes: string, key: Buffer): string {
  return createHmac('sha256', key).update(bytes, 'latin1').digest('base64url').slice(0, MAC_LENGTH);
}

/** 132 bits. */
const MAC_LENGTH = 22;
