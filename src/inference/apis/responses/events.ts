// Writes the events of one stream: each has its type twice, as the name of the event and in its
// data, and the next number.

export class EventWriter {
  /** The number of the next event. */
  sequence = 0;

  /** `members` is the JSON of the event's own members, without braces. */
  write(type: string, members: string): string {
    return `${toHead(type)}${members},"sequence_number":${this.sequence++}}\n\n`;
  }

  /** Same as `write`, for events whose beginning was prepared by `toHead`. */
  writeAfter(head: string, members: string): string {
    return `${head}${members},"sequence_number":${this.sequence++}}\n\n`;
  }
}

export const toHead = (type: string): string =>
  `event: response.${type}\ndata: {"type":"response.${type}",`;
