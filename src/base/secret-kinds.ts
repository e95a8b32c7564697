// Secrets that are known by their form: tokens whose issuers give them a prefix, so that they can be found in any text. The
// formats are those that the issuers document; lengths are lower limits, because issuers have made tokens longer before.
//
// One expression finds whether a text can have any of them; it costs little for texts that have none.

interface SecretKind {
  /** What is shown for it, after the mark. */
  readonly label: string;
  readonly pattern: RegExp;
}

/** The first that matches wins, so `sk-ant-` is before `sk-`. */
const SECRET_KINDS: readonly SecretKind[] = [
  kind('ANTHROPIC', String.raw`sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{20,}`),
  kind('OPENROUTER', String.raw`sk-or-v1-[0-9a-f]{32,}`),
  kind('OPENAI', String.raw`sk-(?:(?:proj|svcacct|admin|service)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})`),
  kind('GITHUB', String.raw`gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}`),
  kind('GITLAB', String.raw`gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt)-[A-Za-z0-9_=-]{20,}`),
  kind('AWS', String.raw`(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])`),
  kind(
    'AWS',
    String.raw`(?<=aws_?(?:secret_?(?:access_?)?key|session_?token)["']?\s{0,3}[=:]\s{0,3}["']?)[A-Za-z0-9/+=]{40,}`,
    'i',
  ),
  kind('SLACK', String.raw`xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}`),
  kind('SLACK', String.raw`(?<=hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9+/]{30,}`),
  kind('DISCORD', String.raw`(?<=discord(?:app)?\.com/api/webhooks/\d{15,22}/)[A-Za-z0-9_-]{60,}`),
  kind('TELEGRAM', String.raw`(?<![0-9])\d{8,10}:AA[A-Za-z0-9_-]{33}`),
  kind('GOOGLE', String.raw`AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{30,}`),
  kind('STRIPE', String.raw`(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}`),
  kind('NPM', String.raw`npm_[A-Za-z0-9]{36,}`),
  kind('PYPI', String.raw`pypi-AgE[A-Za-z0-9_-]{50,}`),
  kind('HUGGINGFACE', String.raw`hf_[A-Za-z0-9]{30,}`),
  kind('SENDGRID', String.raw`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`),
  kind('SHOPIFY', String.raw`shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}`),
  kind('LINEAR', String.raw`lin_(?:api|oauth)_[A-Za-z0-9]{32,}`),
  kind('NOTION', String.raw`ntn_[A-Za-z0-9]{40,}`),
  kind('DIGITALOCEAN', String.raw`do[por]_v1_[a-f0-9]{64}`),
  kind('GROQ', String.raw`gsk_[A-Za-z0-9]{40,}`),
  kind('XAI', String.raw`xai-[A-Za-z0-9]{40,}`),
  kind('DOCKER', String.raw`dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}`),
  kind('VAULT', String.raw`hv[sbr]\.[A-Za-z0-9_-]{24,}`),
  kind(
    'PRIVATE_KEY',
    String.raw`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,.()-]{40,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`,
  ),
];

/** What may be shown for a secret that is known by its kind only, as `secrets.ts` makes it of the kind's name. */
export function isKindLabel(label: string): boolean {
  return SECRET_KINDS.some((kind) => kind.label === label || `${kind.label}_KIND` === label);
}

/** No token is longer. Texts that are read in pieces overlap by so much. */
export const KIND_LENGTH_MAX = 20_200;

const HINTS = new RegExp(
  [
    'sk-|sk_|rk_|gh[pousr]_|github_pat|gl[a-z]{2,5}-|A[KSBC][IC]A|aws_?se|xox|xapp-|hooks\\.slack|/webhooks/|:AA',
    'AIza|GOCSPX|ya29|whsec|npm_|pypi-|hf_|SG\\.|shp[acps]|lin_|ntn_|do[por]_v1|gsk_|xai-|dckr_|hv[sbr]\\.|PRIVATE KEY',
  ].join('|'),
  'i',
);

/** Texts in which a secret of a known kind begins, by its start and end; none overlap. */
export function secretsByKind(text: string): readonly { start: number; end: number; label: string }[] {
  if (text.length < SHORTEST || !HINTS.test(text)) return [];
  const found: { start: number; end: number; label: string }[] = [];
  for (const { label, pattern } of SECRET_KINDS) {
    for (const { index: start, 0: match } of text.matchAll(pattern)) {
      const end = start + match.length;
      if (found.every((other) => end <= other.start || start >= other.end)) found.push({ start, end, label });
    }
  }
  return found.toSorted((one, other) => one.start - other.start);
}

/** Whether a text may contain the beginning of one. */
export function mayBeginSecret(text: string): boolean {
  return HINTS.test(text);
}

const SHORTEST = 20;

function kind(label: string, pattern: string, flags = ''): SecretKind {
  // Not in the middle of a word; the letter of an escaped line end is no part of one.
  const isFree = pattern.startsWith('(?<') || pattern.startsWith('-');
  const start = isFree ? '' : String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrtf]))`;
  return { label, pattern: new RegExp(`${start}(?:${pattern})`, `g${flags}`) };
}
