// A progress bar: one line that is redrawn on a terminal, a plain line now and then anywhere else.

export interface ProgressBar {
  show(done: number, total: number, label: string): void;
  /** Leaves the last state on its own line. */
  end(): void;
}

interface Sample {
  readonly at: number;
  readonly bytes: number;
}

const windowMs = 5_000;
const plainEveryMs = 5_000;
const barCells = 24;

export function createProgressBar(
  output: { isTTY?: boolean; columns?: number; write(text: string): unknown },
  now: () => number = Date.now,
): ProgressBar {
  /** The last few seconds, so that the rate follows the network and not the whole past. */
  const samples: Sample[] = [];
  let shownAt = Number.NEGATIVE_INFINITY;
  let last = '';
  let written = '';

  function rateOf(done: number): number {
    const at = now();
    const previous = samples.at(-1);
    // Going back means that it began anew.
    if (previous !== undefined && done < previous.bytes) samples.length = 0;
    samples.push({ at, bytes: done });
    while (samples.length > 2 && (samples[0] as Sample).at < at - windowMs) samples.shift();
    const first = samples[0] as Sample;
    return at > first.at ? ((done - first.bytes) * 1000) / (at - first.at) : 0;
  }

  function writeLine(): void {
    shownAt = now();
    written = last;
    output.write(last);
  }

  return {
    show(done, total, label) {
      const rate = rateOf(done);
      const part = total === 0 ? 0 : done / total;
      const numbers = [
        `${Math.floor(part * 100)}%`.padStart(4),
        `${toSize(done)} of ${toSize(total)}`,
        ...(rate > 0 ? [`${toSize(rate)}/s`, `${toTime((total - done) / rate)} left`] : []),
        label,
      ].join('  ');
      if (output.isTTY) {
        const full = Math.round(part * barCells);
        last = `${'█'.repeat(full)}${'░'.repeat(barCells - full)} ${numbers}`;
        output.write(`\r\u001b[K${last.slice(0, (output.columns ?? 80) - 1)}`);
      } else {
        last = `${numbers.trim()}\n`;
        if (now() - shownAt >= plainEveryMs) writeLine();
      }
    },
    end() {
      if (output.isTTY) output.write(last === '' ? '' : '\n');
      else if (last !== written) writeLine();
    },
  };
}

const units = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Powers of a thousand, as hubs and disks state sizes. */
export function toSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

export function toTime(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours > 0) return `${hours}h ${minutes}m`;
  return minutes > 0 ? `${minutes}m ${whole % 60}s` : `${whole}s`;
}
