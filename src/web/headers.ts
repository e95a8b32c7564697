// Headers of every response, also of refusals: what a browser may do with it.

/** Pages load only what this server sends, and nothing of them can be shown inside another page. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "frame-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/**
 * The frame that shows a terminal. Its terminal library sets styles of elements, so those are allowed. The sandbox gives
 * it an origin of its own: scripts in it reach neither the cookie, nor the server, nor the page around it.
 */
const FRAME_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "frame-ancestors 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  'sandbox allow-scripts',
].join('; ');

export type ResponseKind = 'page' | 'asset' | 'frame';

export function securityHeaders(kind: ResponseKind): Readonly<Record<string, string>> {
  return {
    'content-security-policy': kind === 'frame' ? FRAME_POLICY : PAGE_POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    // The sandboxed frame has another origin, and loads its script and style from here.
    'cross-origin-resource-policy': kind === 'asset' ? 'cross-origin' : 'same-origin',
    ...(kind === 'asset' ? { 'access-control-allow-origin': '*' } : {}),
    'cache-control': kind === 'asset' ? 'public, max-age=31536000, immutable' : 'no-store',
  };
}
