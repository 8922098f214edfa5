// Metrics on the hot path: plain numbers, converted to prom-client's form when /metrics is read. Prom-client's
// own histograms and counters look up their labels for each observation, which took 4 % of a small request's
// time (`bench/gateway.ts`).

import { Counter, type Histogram, type Registry } from 'prom-client';

export interface SeriesOptions<Name extends string> {
  name: string;
  help: string;
  labelNames: readonly Name[];
}

/** One series of a histogram: a count per bucket and the sum. */
class Distribution {
  readonly #bounds: readonly number[];
  /** Counts by bucket. The last one is for values above all bounds. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = new Array(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += value;
  }
}

/** One series of a counter. */
class Total {
  value = 0;

  add(amount: number): void {
    this.value += amount;
  }
}

interface Value {
  metricName?: string;
  labels: Record<string, string | number>;
  value: number;
}

/** Finds a series by its label values, in the order of the label names. */
export type SeriesOf<One> = (...labels: string[]) => One;

export function histogram<Name extends string>(
  registry: Registry,
  { name, help, labelNames, buckets }: SeriesOptions<Name> & { buckets: readonly number[] },
): SeriesOf<Distribution> {
  const family = new Family(labelNames, () => new Distribution(buckets));
  const metric = {
    name,
    help,
    get: async () => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: family.list().flatMap(([labels, one]) => toValues(name, buckets, labels, one)),
    }),
  };
  // The parameter's type lists only prom-client's classes, but a registry only calls `get`.
  registry.registerMetric(metric as unknown as Histogram);
  return family.find;
}

function toValues(
  name: string,
  buckets: readonly number[],
  labels: Value['labels'],
  { counts, sum }: Distribution,
): Value[] {
  let count = 0;
  const values: Value[] = counts.map((own, at) => {
    count += own;
    return {
      metricName: `${name}_bucket`,
      labels: { le: buckets[at] ?? '+Inf', ...labels },
      value: count,
    };
  });
  values.push({ metricName: `${name}_sum`, labels, value: sum });
  values.push({ metricName: `${name}_count`, labels, value: count });
  return values;
}

export function counter<Name extends string>(
  registry: Registry,
  { name, help, labelNames }: SeriesOptions<Name>,
): SeriesOf<Total> {
  const family = new Family(labelNames, () => new Total());
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, one] of family.list()) this.inc(labels, one.value);
    },
  });
  return family.find;
}

class Family<Name extends string, One> {
  readonly #names: readonly Name[];
  readonly #create: () => One;
  readonly #known = new Map<string, { labels: Record<Name, string>; one: One }>();

  constructor(names: readonly Name[], create: () => One) {
    this.#names = names;
    this.#create = create;
  }

  readonly find = (...values: string[]): One => {
    const key = JSON.stringify(values);
    const found = this.#known.get(key);
    if (found !== undefined) return found.one;
    const labels = Object.fromEntries(this.#names.map((name, at) => [name, values[at] ?? '']));
    const one = this.#create();
    this.#known.set(key, { labels: labels as Record<Name, string>, one });
    return one;
  };

  list(): [Record<Name, string>, One][] {
    return [...this.#known.values()].map(({ labels, one }) => [labels, one]);
  }
}
