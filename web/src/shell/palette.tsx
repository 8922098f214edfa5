// The command palette: pages, actions, models, deployments, machines and API keys, found by typing.

import { useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { createSpotlight, Spotlight, type SpotlightActionGroupData } from '@mantine/spotlight';
import IconKey from '@tabler/icons-react/dist/esm/icons/IconKey.mjs';
import IconRocket from '@tabler/icons-react/dist/esm/icons/IconRocket.mjs';
import IconSearch from '@tabler/icons-react/dist/esm/icons/IconSearch.mjs';
import IconServer2 from '@tabler/icons-react/dist/esm/icons/IconServer2.mjs';
import IconSparkles from '@tabler/icons-react/dist/esm/icons/IconSparkles.mjs';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import type { Instance } from '#cloud/schema.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { useMe, useSignOut } from '../current-user.ts';
import { deploymentsKey, deploymentsPath, toDeploymentPath } from '../deployments/deployments.ts';
import { instancesKey, nameOf } from '../machines/instances.ts';
import { useModels } from '../models/use-models.ts';
import { useApiKeys, useList } from '../queries.ts';
import { toNavigation } from './navigation.ts';
import { toActions } from './palette-actions.ts';
import '@mantine/spotlight/styles.css';
import './palette.css';

interface PaletteProps {
  onClose: () => void;
  onShortcuts: () => void;
  query: string;
  setQuery: (query: string) => void;
}

/** The most results shown at a time. */
const limit = 30;
const searchDelayMs = 200;

export default function Palette({ onClose, onShortcuts, query, setQuery }: PaletteProps) {
  const [[store, spotlight]] = useState(createSpotlight);
  const groups = useGroups(query, onShortcuts);
  useEffect(() => spotlight.open(), [spotlight]);
  return (
    <Spotlight
      store={store}
      actions={groups}
      query={query}
      onQueryChange={setQuery}
      onSpotlightClose={onClose}
      shortcut={null}
      nothingFound="Nothing found"
      highlightQuery
      limit={limit}
      scrollable
      maxHeight="min(26rem, 60vh)"
      centered={false}
      overlayProps={{ backgroundOpacity: 0.45 }}
      transitionProps={{ duration: 0 }}
      title="Search and commands"
      searchProps={{
        placeholder: 'Search pages, models, machines, keys and actions',
        'aria-label': 'Search and commands',
        leftSection: <IconSearch size={17} stroke={1.7} aria-hidden />,
      }}
    />
  );
}

function useGroups(query: string, onShortcuts: () => void): SpotlightActionGroupData[] {
  const [, navigate] = useLocation();
  const me = useMe();
  const signOut = useSignOut();
  const { toggleColorScheme } = useMantineColorScheme();
  // The server searches keys: an account may have thousands.
  const [search] = useDebouncedValue(query.trim().slice(0, 64), searchDelayMs);
  const models = useModels().data?.data ?? [];
  const deployments = useList<DeploymentView>(deploymentsKey, deploymentsPath).data?.data ?? [];
  const machines = useList<Instance>(instancesKey, '/api/v1/instances').data?.data ?? [];
  const keys = useApiKeys(search).data ?? [];
  const actions = toActions({ ...me, navigate, signOut, toggleColorScheme, onShortcuts });
  const pages = toNavigation(me.canUse).flatMap(({ group, items }) =>
    items.map(({ path, name, icon: Icon }) => ({
      id: path,
      label: name,
      keywords: group,
      leftSection: <Icon size={18} stroke={1.6} aria-hidden />,
      onClick: () => navigate(path),
    })),
  );
  return [
    { group: 'Pages', actions: pages },
    {
      group: 'Actions',
      actions: actions.map(({ icon: Icon, ...action }) => ({
        ...action,
        leftSection: <Icon size={18} stroke={1.6} aria-hidden />,
      })),
    },
    {
      group: 'Models',
      actions: models.map(({ id }) => ({
        id: `model ${id}`,
        label: id,
        keywords: 'model',
        leftSection: <IconSparkles size={18} stroke={1.6} aria-hidden />,
        onClick: () => navigate(`/models/${encodeURIComponent(id)}`),
      })),
    },
    { group: 'Deployments', actions: toDeploymentActions(deployments, navigate) },
    {
      group: 'Machines',
      actions: machines.map((machine) => ({
        id: `machine ${machine.id}`,
        label: nameOf(machine),
        description: [machine.status, machine.ip].filter(Boolean).join(' · '),
        keywords: ['machine', machine.id],
        leftSection: <IconServer2 size={18} stroke={1.6} aria-hidden />,
        onClick: () => navigate(`/machines/${machine.id}`),
      })),
    },
    {
      group: 'API keys',
      actions: keys.map(({ id, label, hint }) => ({
        id: `key ${id}`,
        label,
        description: hint,
        keywords: 'api key',
        leftSection: <IconKey size={18} stroke={1.6} aria-hidden />,
        onClick: () => navigate(`/api-keys/${id}`),
      })),
    },
  ];
}

const toDeploymentActions = (
  deployments: DeploymentView[],
  navigate: (path: string) => void,
): SpotlightActionGroupData['actions'] =>
  deployments.map(({ id, name, model, status }) => ({
    id: `deployment ${id}`,
    label: name,
    description: `${status} · ${model}`,
    keywords: 'deployment',
    leftSection: <IconRocket size={18} stroke={1.6} aria-hidden />,
    onClick: () => navigate(toDeploymentPath(name)),
  }));
