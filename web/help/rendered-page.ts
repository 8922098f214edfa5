// Renders one page of docs/: its HTML, the headings that others link to, and the text of each section for the search.

import { posix } from 'node:path';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import ReactMarkdown, { type Options } from 'react-markdown';
import rehypeHighlight from 'rehype-highlight';
import remarkGfm from 'remark-gfm';
import type { Section } from './browser/sections.ts';
import { type Heading, type RenderedPage, toAddress } from './page.ts';

interface Text {
  type: 'text';
  value: string;
}

interface Element {
  type: 'element';
  tagName: string;
  properties: Record<string, unknown>;
  children: Node[];
}

type Node = Text | Element;

interface Root {
  children: Node[];
}

/** `isPage` tells for a path below docs/ whether the guide has it. Links to other files become plain text. */
export function renderPage(
  markdown: string,
  name: string,
  isPage: (path: string) => boolean,
): RenderedPage {
  const page: RenderedPage = { title: '', description: '', html: '', headings: [], sections: [] };
  const collect = () => (tree: Root) => {
    visit(tree.children, (element) => {
      if (element.tagName === 'a') rewriteLink(element, isPage);
      if (/^t[dh]$/.test(element.tagName)) moveAlignment(element);
    });
    addHeadings(tree, page.headings);
    page.title = page.headings[0]?.text ?? name;
    page.description = toText(tree.children.find((one) => isElement(one, /^p$/)));
    page.sections = toSections(tree, page, toAddress(name));
    tree.children = tree.children.map(toScrollable);
  };
  // The only HTML is a comment at the top of generated pages.
  const options: Options = {
    skipHtml: true,
    remarkPlugins: [remarkGfm],
    rehypePlugins: [[rehypeHighlight, { detect: false }], collect as () => void],
  };
  page.html = renderToStaticMarkup(createElement(ReactMarkdown, options, markdown));
  return page;
}

const isElement = (node: Node | undefined, name: RegExp): node is Element =>
  node?.type === 'element' && name.test(node.tagName);

function visit(nodes: readonly Node[], each: (element: Element) => void): void {
  for (const node of nodes) {
    if (node.type !== 'element') continue;
    each(node);
    visit(node.children, each);
  }
}

function toText(node: Node | undefined): string {
  if (node === undefined) return '';
  if (node.type === 'text') return node.value;
  const texts = node.children?.map(toText) ?? [];
  // Cells and items would run into each other.
  return texts.join(/^(?:table|t.*|ul|ol|li)$/.test(node.tagName) ? ' ' : '');
}

function rewriteLink(link: Element, isPage: (path: string) => boolean): void {
  const [path = '', heading] = String(link.properties.href).split('#');
  if (path === '' || /^[a-z]+:/.test(path)) return;
  const target = posix.normalize(path);
  if (!isPage(target)) {
    link.tagName = 'span';
    link.properties = {};
    return;
  }
  const address = toAddress(target.replace(/\.md$/, ''));
  link.properties.href = heading === undefined ? address : `${address}#${heading}`;
}

/** It would become a style attribute, which the content security policy refuses. */
function moveAlignment({ properties }: Element): void {
  if (properties.align !== undefined) properties.className = [`align-${properties.align}`];
  delete properties.align;
}

/** Names headings as Git forges do, so that the same links work in both. Each is a link to itself. */
function addHeadings(tree: Root, headings: Heading[]): void {
  const counts = new Map<string, number>();
  visit(tree.children, (element) => {
    const level = /^h([1-6])$/.exec(element.tagName)?.[1];
    if (level === undefined) return;
    const text = toText(element);
    const base = toSlug(text);
    const count = counts.get(base) ?? 0;
    counts.set(base, count + 1);
    const id = count === 0 ? base : `${base}-${count}`;
    headings.push({ level: Number(level), text, id });
    element.properties.id = id;
    if (level === '1') return;
    const properties = { href: `#${id}`, className: ['anchor'] };
    const link: Element = { type: 'element', tagName: 'a', properties, children: element.children };
    element.children = [link];
  });
}

const toSlug = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\-_ ]/gu, '')
    .replaceAll(' ', '-');

/** The text between two headings, under the upper one. */
function toSections(tree: Root, { title, headings }: RenderedPage, address: string): Section[] {
  const sections: Section[] = [{ page: title, heading: '', address, text: '' }];
  for (const node of tree.children) {
    const id = node.type === 'element' ? node.properties.id : undefined;
    const heading = headings.find((one) => one.id === id);
    if (heading?.level === 1) continue;
    if (heading !== undefined) {
      const { text } = heading;
      sections.push({ page: title, heading: text, address: `${address}#${id}`, text: '' });
      continue;
    }
    const section = sections.at(-1) as Section;
    section.text = `${section.text} ${toText(node)}`.replaceAll(/\s+/g, ' ').trim();
  }
  return sections;
}

/** Code and tables scroll sideways on a phone, also by keyboard. */
function toScrollable(node: Node): Node {
  if (isElement(node, /^(?:ul|ol|li|blockquote)$/)) {
    return { ...node, children: node.children.map(toScrollable) };
  }
  if (isElement(node, /^pre$/)) return wrap(node, { className: ['code'] }, { tabIndex: 0 });
  if (!isElement(node, /^table$/)) return node;
  return wrap(node, { className: ['table'], role: 'group', ariaLabel: 'Table', tabIndex: 0 }, {});
}

const wrap = (inner: Element, properties: object, own: object): Element => ({
  type: 'element',
  tagName: 'div',
  properties: { ...properties },
  children: [{ ...inner, properties: { ...inner.properties, ...own } }],
});
