// Maths in markdown, loaded when an answer has some. MathML needs no styles and no fonts, which the content security
// policy would have to allow, and screen readers read it.

import rehypeKatex from 'rehype-katex';
import remarkMath from 'remark-math';

export const remarkPlugin = [remarkMath, { singleDollarTextMath: false }] as const;
/** `trust` is off, so that commands can't make links. */
export const rehypePlugin = [
  rehypeKatex,
  { output: 'mathml', trust: false, strict: 'ignore', maxExpand: 500, maxSize: 20 },
] as const;
