// Whether a model fits the memory of a place.

import { Box, Group, Stack, Text } from '@mantine/core';
import type { FitsView } from '#deployments/ground/schema.ts';
import { toCount } from '#lib/text/format.ts';
import { StatusBadge } from '../components/status-badge.tsx';
import { type Place, toBestPlace, toPlaceName, useFits, usePlaces } from './places.ts';

type Need = NonNullable<FitsView['need']>;

interface FitProps {
  need: Need;
  place: Place;
}

const Fit = ({ need: { total_gib }, place: { name, fit } }: FitProps) => (
  <Group gap={6} title={fit?.summary}>
    <StatusBadge tone={fit?.fits ? 'good' : 'warning'}>
      {fit?.fits ? 'fits' : 'too small'}
    </StatusBadge>
    <Text size="sm">
      {toPlaceName(name)}: needs {total_gib} GiB, has {fit?.usable_gib ?? 0} GiB
    </Text>
  </Group>
);

interface MemoryFitsProps {
  need: Need;
  places: readonly Place[];
  /** Where it is to run. */
  chosen: string;
}

/** The chosen place, what the memory is for, and which other places have enough. */
export function MemoryFits({ need, places, chosen }: MemoryFitsProps) {
  const place = places.find(({ name }) => name === chosen);
  if (place?.fit === undefined) return null;
  return (
    <Stack gap={6} role="group" aria-label="Memory" align="flex-start">
      <Fit need={need} place={place} />
      <Text size="xs" c="dimmed">
        Weights {need.weights_gib}, KV cache {need.cache_gib} ({need.requests} ×{' '}
        {toCount(need.tokens)} tokens), overhead {need.overhead_gib} GiB. {toOthers(places, chosen)}
      </Text>
    </Stack>
  );
}

/** More of them would be a list to read, not a help to choose. */
const maxOthers = 3;

function toOthers(places: readonly Place[], chosen: string): string {
  const others = places.filter(({ name, fit }) => name !== chosen && fit?.fits);
  if (others.length > 0) {
    const shown = others.slice(0, maxOthers).map(({ label }) => label);
    return `Also fits ${shown.join('; ')}.`;
  }
  const isAny = places.some(({ fit }) => fit?.fits);
  return isAny ? '' : 'No machine here has enough. Choose quantised weights, or add a host.';
}

/** The best place for a model, on its page. Nothing if it is not known what the model needs. */
export function ModelFit({ model }: { model: string }) {
  const fits = useFits({ model, engine: 'vllm', source: '' });
  const places = usePlaces(fits, null);
  const place = places.find(({ name }) => name === toBestPlace(places));
  if (!fits?.need || place?.fit === undefined) return null;
  return (
    <Box mt="md">
      <Fit need={fits.need} place={place} />
    </Box>
  );
}
