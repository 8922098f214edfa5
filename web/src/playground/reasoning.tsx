// What a model thought before it answered: collapsed, with the time that it took.

import { useState } from 'react';
import { Markdown } from './markdown.tsx';

interface ReasoningProps {
  text: string;
  /** Milliseconds. */
  duration: number;
  /** True until the answer begins. */
  thinking: boolean;
}

export function Reasoning({ text, duration, thinking }: ReasoningProps) {
  const [open, setOpen] = useState(false);
  return (
    <details className="reasoning" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{thinking ? 'Thinking…' : `Thought for ${toSeconds(duration)}`}</summary>
      {open && (
        <div className="reasoning-text">
          <Markdown text={text} growing={thinking} />
        </div>
      )}
    </details>
  );
}

const toSeconds = (ms: number) =>
  ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
