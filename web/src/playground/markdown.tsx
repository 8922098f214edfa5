// Renders the markdown of a model, which is not trusted: no HTML, no images from elsewhere, which would tell another
// server that the answer was read, and no links but to web pages and mail addresses.

import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { memo, type ReactNode, useDeferredValue, useMemo } from 'react';
import ReactMarkdown, { type Components, type Options } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import './markdown.css';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorBoundary } from '../components/error-boundary.tsx';
import {
  findDefinitions,
  findOpenCode,
  hasMaths,
  isTooComplex,
  normalizeMaths,
  splitBlocks,
} from './markdown-blocks.ts';

interface MarkdownProps {
  text: string;
  /** True while the text grows: its last block is not highlighted yet. */
  growing: boolean;
}

export function Markdown({ text, growing }: MarkdownProps) {
  // Lets the browser handle input before it renders a large change.
  const shown = useDeferredValue(text);
  const blocks = useMemo(() => splitBlocks(shown), [shown]);
  const definitions = useMemo(() => findDefinitions(shown), [shown]);
  return (
    <div className="markdown">
      {blocks.map((block, index) => (
        <Block
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only added at the end
          key={index}
          text={block}
          definitions={block.includes('[') ? definitions : ''}
          finished={!growing || index < blocks.length - 1}
        />
      ))}
    </div>
  );
}

/** Longer code stays plain: highlighting it would block the page. 44,688 characters took 459 ms on a busy computer. */
const maxHighlightedLength = 5_000;

interface BlockProps {
  text: string;
  definitions: string;
  finished: boolean;
}

const Block = memo(function Block(props: BlockProps) {
  const plain = <div className="turn-text">{props.text}</div>;
  const open = props.finished ? null : findOpenCode(props.text);
  if (open !== null) {
    return (
      <CodeBlock {...open}>
        <code>{open.code}</code>
      </CodeBlock>
    );
  }
  if (isTooComplex(props.text)) return plain;
  return (
    <ErrorBoundary fallback={plain}>
      <RenderedBlock {...props} />
    </ErrorBoundary>
  );
});

function RenderedBlock({ text, definitions, finished }: BlockProps) {
  const source = normalizeMaths(text);
  const hasCode = /^\s*(`{3}|~{3})/m.test(text);
  const maths = useModule('maths', () => import('./maths.ts'), hasMaths(source));
  const highlighting = useModule(
    'highlighting',
    () => import('./highlighting.ts'),
    finished && hasCode && text.length <= maxHighlightedLength,
  );
  const remarkPlugins = [remarkGfm, maths?.remarkPlugin].filter(Boolean);
  const rehypePlugins = [maths?.rehypePlugin, highlighting?.rehypePlugin].filter(Boolean);
  return (
    <ReactMarkdown
      remarkPlugins={remarkPlugins as Options['remarkPlugins']}
      rehypePlugins={rehypePlugins as Options['rehypePlugins']}
      components={components}
      urlTransform={toSafeUrl}
    >
      {definitions === '' ? source : `${source}\n\n${definitions}`}
    </ReactMarkdown>
  );
}

/** A part of this page that is loaded when it is first needed. Undefined until then. */
function useModule<T>(name: string, load: () => Promise<T>, needed: boolean): T | undefined {
  const { data } = useQuery({
    queryKey: ['module', name],
    queryFn: load,
    enabled: needed,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  });
  // All blocks of a long answer get it at once, which must not block the page.
  return useDeferredValue(needed ? data : undefined);
}

/** Empty for an address that is not shown as a link or an image. */
export function toSafeUrl(url: string, name: string): string {
  if (name === 'src') return /^data:image\/(png|jpeg|gif|webp);base64,/i.test(url) ? url : '';
  return /^(https?:\/\/|mailto:)/i.test(url) ? url : '';
}

const components: Components = {
  a: ({ href, children }) =>
    href ? (
      <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ src, alt }) =>
    src ? (
      <img src={src} alt={alt ?? ''} />
    ) : (
      <Text span c="dimmed" size="sm">
        [Image not loaded{alt ? `: ${alt}` : ''}]
      </Text>
    ),
  pre: ({ node, children }) => (
    <CodeBlock
      code={toText(node)}
      language={/language-([\w+#-]+)/.exec(String(classOf(node)))?.[1] ?? ''}
    >
      {children}
    </CodeBlock>
  ),
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which the keyboard must reach
    <section className="markdown-table" tabIndex={0} aria-label="Table">
      <table>{children}</table>
    </section>
  ),
  // Headings of an answer are below those of the page.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h3>{children}</h3>,
  h3: ({ children }) => <h4>{children}</h4>,
  input: ({ checked }) => (
    <input type="checkbox" checked={checked ?? false} readOnly disabled aria-label="Task" />
  ),
};

interface CodeBlockProps {
  code: string;
  language: string;
  children: ReactNode;
}

const CodeBlock = ({ code, language, children }: CodeBlockProps) => (
  <div className="markdown-code">
    <div className="markdown-code-head">
      <span>{language || 'text'}</span>
      <CopyButton value={code.replace(/\n$/, '')} label="Copy code" />
    </div>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which the keyboard must reach */}
    <pre tabIndex={0}>{children}</pre>
  </div>
);

interface HastNode {
  value?: string;
  children?: unknown[];
  properties?: Record<string, unknown>;
}

const toText = (node: HastNode | undefined): string =>
  node?.value ?? (node?.children ?? []).map((child) => toText(child as HastNode)).join('');

const classOf = (node: HastNode | undefined) =>
  (node?.children?.[0] as HastNode | undefined)?.properties?.className ?? '';
