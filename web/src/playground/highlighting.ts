// Syntax highlighting, loaded when an answer has code: the 37 languages that highlight.js calls common. Code in any
// other language, and code without one, stays plain.

import rehypeHighlight from 'rehype-highlight';

export const rehypePlugin = [rehypeHighlight, { detect: false }] as const;
