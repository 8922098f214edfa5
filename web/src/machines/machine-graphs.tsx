// The live graphs of one machine. A figure that its host can't measure has the reason in place of a graph.

import { AreaChart } from '@mantine/charts';
import '@mantine/charts/styles.css';
import { Paper, SimpleGrid, Stack, Text } from '@mantine/core';
import type { InstanceDetail, InstanceStats, MeasuredFigure } from '#cloud/schema.ts';
import { toBinarySize, toCounted, toSize } from '#lib/text/format.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { type Point, toPerSecond, toPoints, useStats } from './use-stats.ts';

interface MachineGraphsProps {
  id: string;
  detail: InstanceDetail;
}

const gib = 1024 ** 3;
const toPercentText = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)}%`;
const toRateText = (value: number) => `${toSize(value)}/s`;
const readValue = <Value,>(figure: MeasuredFigure<Value> | undefined) =>
  figure && 'value' in figure ? figure.value : undefined;

export default function MachineGraphs({ id, detail }: MachineGraphsProps) {
  const { samples, error, reason } = useStats(id);
  const latest = samples.at(-1);
  if (reason !== null) {
    return (
      <Paper withBorder p="md" role="status">
        <Text size="sm">{reason}</Text>
      </Paper>
    );
  }
  const { vcpus, memory_gib, storage_gib } = detail;
  const gpus = readValue(latest?.gpus) ?? [];
  const gpuReason = reasonOf(latest?.gpus);
  return (
    <Stack gap="sm">
      <ErrorNotice error={error} />
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <Graph
          title="CPU"
          of={toCounted(vcpus, 'vCPU')}
          reason={reasonOf(latest?.cpu_ms)}
          points={toPoints(samples, (now, before) => ({
            CPU: toCpuPercent([now, before], vcpus),
          }))}
          toText={toPercentText}
          max={100}
        />
        <Graph
          title="Memory"
          of={`${memory_gib} GiB`}
          reason={reasonOf(latest?.memory_bytes)}
          points={toPoints(samples, (now) => ({ Memory: readValue(now.memory_bytes) }))}
          toText={toBinarySize}
          max={memory_gib * gib}
        />
        <Graph
          title="Disk"
          of={`${storage_gib} GiB`}
          reason={reasonOf(latest?.disk_bytes)}
          points={toPoints(samples, (now) => ({ Disk: readValue(now.disk_bytes) }))}
          toText={toBinarySize}
          max={storage_gib * gib}
        />
        <Graph
          title="Network"
          reason={reasonOf(latest?.network)}
          points={toPoints(samples, (now, before) => ({
            Received: toPerSecond([now, before], (one) => readValue(one.network)?.received_bytes),
            Sent: toPerSecond([now, before], (one) => readValue(one.network)?.sent_bytes),
          }))}
          toText={toRateText}
        />
        {gpuReason && <Graph title="GPU" reason={gpuReason} points={[]} toText={toPercentText} />}
        {gpus.map((gpu, index) => (
          <Graph
            // biome-ignore lint/suspicious/noArrayIndexKey: the order of a machine's GPUs never changes
            key={index}
            title={`GPU ${index}`}
            of={`${gpu.model} · ${toBinarySize(gpu.memory_bytes)} of ${toBinarySize(gpu.total_bytes)} memory`}
            reason={null}
            points={toPoints(samples, (now) => ({
              GPU: readValue(now.gpus)?.[index]?.busy_percent,
            }))}
            toText={toPercentText}
            max={100}
          />
        ))}
      </SimpleGrid>
    </Stack>
  );
}

/** A container may briefly use more than its share; the graph shows it as it is. */
function toCpuPercent(pair: readonly [InstanceStats, InstanceStats | undefined], vcpus: number) {
  const msPerSecond = toPerSecond(pair, (one) => readValue(one.cpu_ms));
  return msPerSecond === undefined ? undefined : msPerSecond / 10 / vcpus;
}

const reasonOf = (figure: MeasuredFigure<unknown> | undefined) =>
  figure && 'unavailable' in figure ? figure.unavailable : null;

interface GraphProps {
  title: string;
  /** What the figure is a part of, e.g. `4 GiB`. */
  of?: string;
  /** Why there is no graph; null if there is one. */
  reason: string | null;
  points: Point[];
  toText: (value: number) => string;
  max?: number;
}

const colors = ['teal.6', 'blue.5'];

function Graph({ title, of, reason, points, toText, max }: GraphProps) {
  const last = points.at(-1);
  const names = Object.keys(last ?? {}).filter((name) => name !== 'at');
  const current = names.map((name) => ({ name, value: last?.[name] }));
  const shown = current.map(({ name, value }) => ({
    name,
    text: typeof value === 'number' ? toText(value) : '–',
  }));
  const isOne = shown.length === 1;
  const spoken = shown.map(({ name, text }) => (isOne ? text : `${name} ${text}`)).join(', ');
  return (
    <Paper withBorder p="md" className="graph" role="group" aria-label={title}>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      {reason ? (
        <Text size="sm" c="dimmed" mt={4}>
          Not available. {reason}
        </Text>
      ) : (
        <>
          <Text className="graph-value">
            {shown.map(({ name, text }, index) => (
              <span key={name} className="graph-figure">
                {!isOne && (
                  <span className="graph-series" data-series={index}>
                    {name}{' '}
                  </span>
                )}
                {text}
              </span>
            ))}
            {of && <span className="graph-total"> of {of}</span>}
          </Text>
          <div
            role="img"
            aria-label={`${title} over the last five minutes. Now: ${spoken || 'not measured yet'}.`}
          >
            <AreaChart
              h={120}
              data={points}
              dataKey="at"
              series={names.map((name, index) => ({ name, color: colors[index] ?? 'gray.5' }))}
              curveType="linear"
              withDots={false}
              withXAxis={false}
              gridAxis="x"
              strokeWidth={1.5}
              fillOpacity={0.18}
              connectNulls={false}
              valueFormatter={toText}
              yAxisProps={{
                width: 68,
                domain: [0, max ?? 'auto'],
                ...(max === undefined ? { tickCount: 3 } : { ticks: [0, max / 2, max] }),
                tickFormatter: toText,
              }}
              areaProps={{ isAnimationActive: false }}
              tooltipProps={{ isAnimationActive: false }}
              areaChartProps={{ accessibilityLayer: false, margin: { top: 8, bottom: 6 } }}
              textColor="dimmed"
            />
          </div>
        </>
      )}
    </Paper>
  );
}
