// The toy effect: reverse a text.

/** The output `reversed` is the text, last character first. */
export interface ReverseSpec<T> {
  readonly kind: 'reverse';
  readonly text: T;
}
