// Renders the markdown of a model, which is not trusted: no HTML, no images from elsewhere, which would tell another
// server that the answer was read, and no links but to web pages and mail addresses.

import { Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, memo, type ReactNode, useContext, useDeferredValue, useMemo } from 'react';
import ReactMarkdown, { type Components, type Options } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import './markdown.css';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorBoundary } from '../components/error-boundary.tsx';
import type { CodeNode } from './highlighting.ts';
import {
  findDefinitions,
  findOpenCode,
  findOpenMaths,
  hasMaths,
  isTooComplex,
  normalizeMaths,
  splitBlocks,
  splitTable,
} from './markdown-blocks.ts';

interface MarkdownProps {
  text: string;
  /** True while the text grows: its last block is not highlighted yet. */
  growing: boolean;
}

export function Markdown({ text, growing }: MarkdownProps) {
  // Lets the browser handle input before it renders a large change, or a long conversation that is opened.
  const shown = useDeferredValue(text, '');
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

/** Longer code stays plain: the browser takes long to lay out its thousands of words. */
const maxHighlightedLength = 5_000;

/** False in the block that still grows. */
const Finished = createContext(true);

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
  const maths = props.finished ? null : findOpenMaths(props.text);
  if (maths !== null) {
    return (
      <>
        <Block {...props} text={props.text.slice(0, maths)} finished />
        <div className="turn-text">{props.text.slice(maths)}</div>
      </>
    );
  }
  const pieces = splitTable(props.text);
  return (
    <ErrorBoundary fallback={plain}>
      <Finished value={props.finished}>
        {pieces === null ? (
          <RenderedBlock {...props} components={components} />
        ) : (
          <LongTable pieces={pieces} definitions={props.definitions} />
        )}
      </Finished>
    </ErrorBoundary>
  );
});

interface RenderedProps extends Pick<BlockProps, 'text' | 'definitions'> {
  components: Components;
}

/** Renders nothing again that has not changed. */
const RenderedBlock = memo(function RenderedBlock(props: RenderedProps) {
  const { text, definitions, components } = props;
  const source = normalizeMaths(text);
  const maths = useMaths(hasMaths(source));
  const remarkPlugins = [remarkGfm, maths?.remarkPlugin].filter(Boolean);
  const rehypePlugins = [maths?.rehypePlugin].filter(Boolean);
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
});

/** A table whose rows are parsed some at a time, so that a growing one is not parsed as a whole again and again. */
const LongTable = ({ pieces, definitions }: { pieces: string[]; definitions: string }) => (
  <TableFrame>
    {pieces.map((piece, index) => (
      <RenderedBlock
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces are only added at the end
        key={index}
        text={piece}
        definitions={definitions}
        components={index === 0 ? firstRows : nextRows}
      />
    ))}
  </TableFrame>
);

const TableFrame = ({ children }: { children?: ReactNode }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which the keyboard must reach
  <section className="markdown-table" tabIndex={0} aria-label="Table">
    <table>{children}</table>
  </section>
);

/** Loaded when it is first needed, and never again. */
const forever = { staleTime: Number.POSITIVE_INFINITY, gcTime: Number.POSITIVE_INFINITY };

/** Undefined until it is loaded. */
function useMaths(needed: boolean) {
  const queryFn = () => import('./maths.ts');
  const { data } = useQuery({ queryKey: ['maths'], queryFn, enabled: needed, ...forever });
  // All blocks of a long answer get it at once, which must not block the page.
  return useDeferredValue(needed ? data : undefined);
}

/** Undefined until the code is highlighted. */
function useHighlighted(code: string, language: string) {
  const client = useQueryClient();
  const finished = useContext(Finished);
  const { data } = useQuery({
    queryKey: ['highlighted', language, code],
    queryFn: async () => {
      const load = async () => (await import('./highlighting.ts')).createHighlight();
      const highlight = await client.ensureQueryData({
        queryKey: ['highlight'],
        queryFn: load,
        ...forever,
      });
      return highlight(code, language);
    },
    enabled: finished && language !== '' && code.length <= maxHighlightedLength,
    staleTime: forever.staleTime,
  });
  return useDeferredValue(data);
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
  pre: ({ node }) => (
    <HighlightedCode
      code={toText(node)}
      language={/language-([\w+#-]+)/.exec(String(classOf(node)))?.[1] ?? ''}
    />
  ),
  table: TableFrame,
  // Headings of an answer are below those of the page.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h3>{children}</h3>,
  h3: ({ children }) => <h4>{children}</h4>,
  input: ({ checked }) => (
    <input type="checkbox" checked={checked ?? false} readOnly disabled aria-label="Task" />
  ),
};

const firstRows: Components = { ...components, table: ({ children }) => children };
const nextRows: Components = { ...firstRows, thead: () => null };

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

function HighlightedCode(props: Pick<CodeBlockProps, 'code' | 'language'>) {
  const nodes = useHighlighted(props.code, props.language);
  return (
    <CodeBlock {...props}>
      <code>{nodes === undefined ? props.code : nodes.map(toSpan)}</code>
    </CodeBlock>
  );
}

const toSpan = (node: CodeNode, index: number): ReactNode =>
  node.type === 'text' ? (
    node.value
  ) : (
    <span key={index} className={node.properties.className?.join(' ')}>
      {node.children.map(toSpan)}
    </span>
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
