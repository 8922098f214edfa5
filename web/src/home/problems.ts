// Finds what needs attention in the lists that the other pages show.

import type { HostView } from '#cloud/hosts/schema.ts';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import { toFailedPart } from '#lib/text/deployment-failure.ts';
import { toCounted, toMoney, toPercent } from '#lib/text/format.ts';
import { type Allowance, useAccountLimits } from '../api-keys/limits.ts';
import type { Tone } from '../components/status-badge.tsx';
import { useMe } from '../current-user.ts';
import { toDeploymentPath, useDeployments } from '../deployments/deployments.ts';
import { useHosts } from '../hosts/hosts.ts';
import { nameOf, toMachinePath, useDetails, useInstances } from '../machines/instances.ts';
import { toState } from '../models/backend-row.tsx';
import { standInLabel, toModelPath, toPullPath, useBackends } from '../models/backends.ts';
import { toLastDay } from '../usage/time-range.ts';
import { useUsage } from '../usage/usage-data.ts';

export interface Problem {
  id: string;
  tone: Tone;
  title: string;
  /** One or a few words beside the title. */
  state: string;
  detail: string | null;
  /** The page that shows it. */
  href: string;
  action?: { label: string; href: string };
}

/** Undefined until everything is known. */
export function useProblems(): Problem[] | undefined {
  const backends = useBackends().data?.data;
  const instances = useInstances().data?.data;
  const details = useDetails();
  const hosts = useHosts().data?.data;
  const deployments = useDeployments().data?.data;
  const account = useAccountLimits().data;
  const { canManage } = useMe();
  const used = useUsage(toLastDay(Date.now()), 'model').data;
  if (!backends || !instances || !hosts || !deployments || !account || !used) return undefined;
  const usedModels = new Set(used.map(({ group }) => group));
  return [
    ...toHostProblems(hosts),
    ...toMachineProblems(instances, details),
    ...toDeploymentProblems(deployments),
    ...toBackendProblems(backends),
    ...toBudgetProblems(account, canManage),
    ...toStandInProblems(backends, usedModels),
  ].toSorted((one, other) => Number(other.tone === 'bad') - Number(one.tone === 'bad'));
}

const toHostProblems = (hosts: HostView[]): Problem[] =>
  hosts
    .filter(({ status }) => status === 'offline')
    .map(({ id, name, reason, instances }) => ({
      id,
      tone: 'bad',
      title: `Host ${name}`,
      state: 'unreachable',
      detail: [reason, instances > 0 && `${toCounted(instances, 'machine')} on it.`]
        .filter(Boolean)
        .join(' '),
      href: '/hosts',
    }));

const toMachineProblems = (
  instances: Instance[],
  details: ReadonlyMap<string, InstanceDetail>,
): Problem[] =>
  instances
    .filter(({ status }) => status === 'unhealthy')
    .map((instance) => {
      const detail = details.get(instance.id);
      return {
        id: instance.id,
        tone: 'bad',
        title: `Machine ${nameOf(instance)}`,
        state: 'unhealthy',
        detail: detail?.status_reason ?? detail?.last_error ?? null,
        href: toMachinePath(instance),
      };
    });

/** With a reason, a deployment that is ready serves by an older revision, or has lost a replica lately. */
const toDeploymentProblems = (deployments: DeploymentView[]): Problem[] =>
  deployments
    .filter(({ status, reason }) => status === 'failed' || (status === 'ready' && reason !== null))
    .map(({ id, name, status, revision, reason, replicas }) => ({
      id,
      tone: status === 'failed' ? 'bad' : 'warning',
      title: `Deployment ${name}`,
      state: status === 'failed' ? 'failed' : toFailedPart({ revision, replicas }),
      detail: reason,
      href: toDeploymentPath(name),
    }));

/** A draining backend fails nothing: it gets no requests. */
const toBackendProblems = (backends: BackendView[]): Problem[] =>
  backends
    .filter(
      ({ kind, draining, health, errors, failing }) =>
        kind !== 'stand-in' && !draining && (health !== 'healthy' || errors > 0 || failing),
    )
    .map((backend) => {
      const { tone, word } = toState(backend);
      return {
        id: backend.id,
        tone,
        title: `Backend ${backend.name} of ${backend.model}`,
        state: word,
        detail:
          [backend.url, backend.reason ?? backend.last_error].filter(Boolean).join(': ') || null,
        href: toModelPath(backend.model),
      };
    });

function toBudgetProblems({ limits, spend }: Allowance, canEdit: boolean): Problem[] {
  const budget = limits.monthly_budget ?? null;
  if (budget === null || spend.cost < 0.9 * budget) return [];
  const isSpent = spend.cost >= budget;
  return [
    {
      id: 'budget',
      tone: isSpent ? 'bad' : 'warning',
      title: 'Budget of the account',
      state: `${toPercent(spend.cost, budget)} used`,
      detail: `${toMoney(spend.cost)} of ${toMoney(budget)} this month. ${
        isSpent ? 'Requests are refused.' : 'Requests are refused once it is used up.'
      }`,
      href: '/api-keys',
      ...(canEdit && { action: { label: 'Edit account limits', href: '/api-keys/limits' } }),
    },
  ];
}

/** One line for all of them: those that programs ask for come first. */
function toStandInProblems(backends: BackendView[], usedModels: ReadonlySet<string>): Problem[] {
  const models = backends.filter(({ kind }) => kind === 'stand-in').map(({ model }) => model);
  const [used, ...otherUsed] = models.filter((model) => usedModels.has(model));
  const asked =
    used === undefined
      ? 'Nothing serves them yet.'
      : `Programs ask for ${[used, otherUsed.length > 0 && toCounted(otherUsed.length, 'other')].filter(Boolean).join(' and ')}.`;
  if (models.length === 0) return [];
  return [
    {
      id: 'stand-ins',
      tone: 'warning',
      title: toCounted(models.length, 'model'),
      state: standInLabel,
      detail: `${asked} The stand-in answers, free of charge.`,
      href: '/models',
      action:
        used === undefined
          ? { label: 'Serve real models', href: '/models' }
          : { label: 'Serve the real model', href: toPullPath(used) },
    },
  ];
}
