// Highlights code in a thread of its own, so that the page reacts meanwhile: the 37 languages that highlight.js calls
// common. Code in any other language stays plain.

import rehypeHighlight from 'rehype-highlight';
import type { CodeNode, HighlightJob, HighlightResult } from './highlighting.ts';

const highlight = rehypeHighlight({ detect: false });
/** Takes what the plugin says about languages that it doesn't know. */
const file = { message() {} };

self.onmessage = ({ data: { id, language, code } }: MessageEvent<HighlightJob>) => {
  const element = {
    type: 'element',
    tagName: 'code',
    properties: { className: [`language-${language}`] },
    children: [{ type: 'text', value: code }] as CodeNode[],
  };
  const pre = { type: 'element', tagName: 'pre', properties: {}, children: [element] };
  highlight({ type: 'root', children: [pre] } as never, file as never);
  const result: HighlightResult = { id, nodes: element.children };
  self.postMessage(result);
};
