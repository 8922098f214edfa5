// Turns content blocks into the parts of a chat message. Blocks that this server doesn't know are left out, because a
// refusal would end the conversation that contains them.

import type { ChatMessage } from '#inference/schema.ts';
import { type Members, membersOf, textOf } from '#lib/json-members.ts';
import type { Block, Content } from './schema.ts';

export type Part = Exclude<NonNullable<ChatMessage['content']>, string>[number];

export const blocksOf = (content: Content): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

export const toParts = (blocks: readonly Block[]): Part[] => blocks.flatMap(toPartsOf);

/** A text if all parts are: not every server takes a list. */
export const toContent = (parts: Part[]): string | Part[] =>
  parts.every(({ type }) => type === 'text') ? toText(parts) : parts;

/** The text parts, one per line. */
export const toText = (parts: readonly Part[]): string =>
  parts.flatMap(({ text }) => (text === undefined ? [] : [text])).join('\n');

/** The content of a block inside a block, which no schema has checked. */
export function nestedBlocks(content: unknown): Block[] {
  if (typeof content === 'string') return blocksOf(content);
  if (!Array.isArray(content)) return [];
  return content.filter((block): block is Block => typeof membersOf(block).type === 'string');
}

function toPartsOf(block: Block): Part[] {
  const members = block as Members;
  switch (block.type) {
    case 'text':
      return texts(block.text);
    case 'image':
      return toImage(membersOf(members.source));
    case 'document':
      return toDocument(members, membersOf(members.source));
    case 'search_result':
      return texts(members.title, members.source, toText(toParts(nestedBlocks(members.content))));
    case 'tool_reference':
      return texts(`The tool ${textOf(members.tool_name)} is available.`);
    default:
      return [];
  }
}

function toImage({ type, media_type, data, url }: Members): Part[] {
  const address =
    type === 'base64' ? `data:${textOf(media_type)};base64,${textOf(data)}` : textOf(url);
  if (address !== '') return [{ type: 'image_url', image_url: { url: address } } as Part];
  return texts('[An image that this server does not have.]');
}

function toDocument({ title, context }: Members, source: Members): Part[] {
  const head = texts(title, context);
  switch (source.type) {
    case 'text':
      return [...head, ...texts(source.data)];
    case 'content':
      return [...head, ...toParts(nestedBlocks(source.content))];
    case 'base64': {
      const file = {
        filename: textOf(title) || 'document.pdf',
        file_data: `data:${textOf(source.media_type)};base64,${textOf(source.data)}`,
      };
      return [...texts(context), { type: 'file', file } as Part];
    }
    default:
      return [
        ...head,
        ...texts(`[A document that this server does not have. ${textOf(source.url)}]`),
      ];
  }
}

/** One text part of the values that are texts and not empty. */
function texts(...values: unknown[]): Part[] {
  const text = values.map(textOf).filter((value) => value !== '');
  return text.length === 0 ? [] : [{ type: 'text', text: text.join('\n') }];
}
