// The words of an answer; with chances, each token says on hover how likely it was and what else was.

import type { TokenChance } from './conversation.ts';

interface AnswerTextProps {
  text: string;
  tokens: TokenChance[] | undefined;
}

export function AnswerText({ text, tokens = [] }: AnswerTextProps) {
  // Characters that are cut over several tokens have no token of their own: then the text stands alone.
  const isWhole = tokens.length > 0 && tokens.map(({ token }) => token).join('') === text;
  if (!isWhole) return <div className="turn-text">{text}</div>;
  return (
    <div className="turn-text">
      {tokens.map((chance, index) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: a finished answer's tokens never move
          key={index}
          className="token"
          data-chance={toLevel(chance.logprob)}
          title={describe(chance)}
        >
          {chance.token}
        </span>
      ))}
    </div>
  );
}

const toPercent = (logprob: number) => `${(Math.exp(logprob) * 100).toFixed(1)}%`;

function toLevel(logprob: number): 'high' | 'fair' | 'low' {
  const chance = Math.exp(logprob);
  if (chance >= 0.7) return 'high';
  return chance >= 0.3 ? 'fair' : 'low';
}

/** e.g. `62.1%`, then a line for each of the others. */
function describe({ token, logprob, others }: TokenChance): string {
  const lines = others
    .filter((other) => other.token !== token)
    .map((other) => `${JSON.stringify(other.token)} ${toPercent(other.logprob)}`);
  return [toPercent(logprob), ...lines].join('\n');
}
