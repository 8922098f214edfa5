// What a page of the guide is once it is rendered.

import type { Section } from './browser/sections.ts';

export interface Heading {
  level: number;
  text: string;
  /** Unique on its page. The part of an address after the #. */
  id: string;
}

export interface RenderedPage {
  title: string;
  /** The first paragraph. */
  description: string;
  html: string;
  headings: Heading[];
  sections: Section[];
}

/** A page's address, relative to the guide: servers send the folder for the first page. */
export const toAddress = (name: string) => (name === 'index' ? './' : `${name}.html`);
