// Which line of an output looks as if something went wrong: where the output of a failed step is opened.

/** In latin1 or UTF-16. `0 errors` and `no failed tests` are good news. */
export const ERROR_LINE =
  /(?<!\b(?:0|no|without) )\b(?:error|errors|err!|fatal|failed|failure|failures|panic|panicked|exception|traceback)\b|[A-Za-z]Error\b|✗|\u00e2\u009c\u0097/i;
