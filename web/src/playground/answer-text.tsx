// The words of an answer; with chances, each token says under the pointer, or when it is tapped or reached
// by the arrow keys, how likely it was and what else was.

import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from 'react';
import type { TokenProbability } from './conversation.ts';

interface AnswerTextProps {
  text: string;
  tokens: TokenProbability[] | undefined;
}

export function AnswerText({ text, tokens = [] }: AnswerTextProps) {
  // Characters that are cut over several tokens have no token of their own: then the text stands alone.
  const isWhole = tokens.length > 0 && tokens.map(({ token }) => token).join('') === text;
  if (!isWhole) return <div className="turn-text">{text}</div>;
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
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a form's
    <div
      className="turn-text"
      role="group"
      aria-label="Answer with how likely each token was; the arrow keys go through them"
      aria-describedby={at === null ? undefined : id}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its tokens are gone through by keyboard
      tabIndex={0}
      onKeyDown={onKeyDown}
      onBlur={() => setAt(null)}
      onPointerLeave={() => setAt(null)}
    >
      {tokens.map((chance, index) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: a finished answer's tokens never move
          key={index}
          className="token"
          data-chance={toLevel(chance.logprob)}
          data-shown={index === at || undefined}
          onPointerEnter={() => setAt(index)}
        >
          {chance.token}
          {index === at && <Chances id={id} chance={chance} />}
        </span>
      ))}
    </div>
  );
}

function Chances({ id, chance }: { id: string; chance: TokenProbability }) {
  const rows = [chance, ...chance.others.filter(({ token }) => token !== chance.token)];
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => keepInside(box.current), []);
  return (
    <span className="chances" role="tooltip" id={id} ref={box}>
      {rows.map(({ token, logprob }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two tokens may be written alike
        <span key={index} className="chance">
          <span className="chance-token">{JSON.stringify(token)}</span>
          <span>{toPercent(logprob)}</span>
          <meter min={0} max={1} value={Math.exp(logprob)} aria-hidden />
        </span>
      ))}
    </span>
  );
}

/** Near the right or the lower edge of the conversation it would be cut off. */
function keepInside(box: HTMLElement | null): void {
  const room = box?.closest('.turns')?.getBoundingClientRect();
  if (!box || !room) return;
  const { right, bottom } = box.getBoundingClientRect();
  if (right > room.right - 16) box.style.translate = `${room.right - 16 - right}px`;
  if (bottom > room.bottom) Object.assign(box.style, { top: 'auto', bottom: 'calc(100% + 4px)' });
}

const toPercent = (logprob: number) => `${(Math.exp(logprob) * 100).toFixed(1)}%`;

function toLevel(logprob: number): 'high' | 'fair' | 'low' {
  const chance = Math.exp(logprob);
  if (chance >= 0.7) return 'high';
  return chance >= 0.3 ? 'fair' : 'low';
}
