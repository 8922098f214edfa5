// The text of a response: markdown, or its tokens if their probabilities are known. A tooltip shows how likely a token
// and its alternatives were, on hover, on tap, or when the arrow keys reach the token.

import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from 'react';
import type { TokenProbability } from './conversation.ts';
import { Markdown } from './markdown.tsx';

interface ResponseTextProps {
  text: string;
  tokens: TokenProbability[] | undefined;
  growing: boolean;
}

export function ResponseText({ text, tokens = [], growing }: ResponseTextProps) {
  // A character that is split over several tokens is in none of them. Then only the text is shown.
  const coversText = tokens.length > 0 && tokens.map(({ token }) => token).join('') === text;
  if (!coversText) return <Markdown text={text} growing={growing} />;
  return <Tokens tokens={tokens} />;
}

const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

function Tokens({ tokens }: { tokens: TokenProbability[] }) {
  const id = useId();
  const [at, setAt] = useState<number | null>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = steps[event.key];
    if (event.key === 'Escape') setAt(null);
    if (step === undefined) return;
    event.preventDefault();
    setAt(Math.min(tokens.length - 1, Math.max(0, (at ?? -1) + step)));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to a form
    <div
      className="turn-text"
      role="group"
      aria-label="Response with token probabilities. Use the arrow keys to move between tokens."
      aria-describedby={at === null ? undefined : id}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys move between its tokens
      tabIndex={0}
      onKeyDown={onKeyDown}
      onBlur={() => setAt(null)}
      onPointerLeave={() => setAt(null)}
    >
      {tokens.map((probability, index) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: the tokens of a finished response never move
          key={index}
          className="token"
          data-probability={toLevel(probability.logprob)}
          data-shown={index === at || undefined}
          onPointerEnter={() => setAt(index)}
        >
          {probability.token}
          {index === at && <Probabilities id={id} probability={probability} />}
        </span>
      ))}
    </div>
  );
}

function Probabilities({ id, probability }: { id: string; probability: TokenProbability }) {
  const rows = [
    probability,
    ...probability.others.filter(({ token }) => token !== probability.token),
  ];
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => keepInside(box.current), []);
  return (
    <span className="probabilities" role="tooltip" id={id} ref={box}>
      {rows.map(({ token, logprob }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two tokens may have the same text
        <span key={index} className="probability">
          <span className="probability-token">{JSON.stringify(token)}</span>
          <span>{toPercent(logprob)}</span>
          <meter min={0} max={1} value={Math.exp(logprob)} aria-hidden />
        </span>
      ))}
    </span>
  );
}

/** Moves the tooltip so that the right or lower edge of the conversation does not cut it off. */
function keepInside(box: HTMLElement | null): void {
  const room = box?.closest('.turns')?.getBoundingClientRect();
  if (!box || !room) return;
  const { right, bottom } = box.getBoundingClientRect();
  if (right > room.right - 16) box.style.translate = `${room.right - 16 - right}px`;
  if (bottom > room.bottom) Object.assign(box.style, { top: 'auto', bottom: 'calc(100% + 4px)' });
}

const toPercent = (logprob: number) => `${(Math.exp(logprob) * 100).toFixed(1)}%`;

function toLevel(logprob: number): 'high' | 'fair' | 'low' {
  const probability = Math.exp(logprob);
  if (probability >= 0.7) return 'high';
  return probability >= 0.3 ? 'fair' : 'low';
}
