// The first steps, and whether each is done.

import { useMe } from '../current-user.ts';
import { useInstances } from '../machines/instances.ts';
import { useBackends } from '../models/backends.ts';
import { useApiKeys, useMembers } from '../queries.ts';
import { toThisMonth } from '../usage/time-range.ts';
import { useTotals, useUsage } from '../usage/usage-data.ts';
import type { UsagePoint } from '../usage/usage-totals.ts';

export interface Step {
  name: string;
  text: string;
  href: string;
  isDone: boolean;
}

const succeeded = ({ requests, errors }: UsagePoint['totals']) => requests > errors;

/** Undefined until all of them are known. Only owners add backends and invite people. */
export function useSteps(): Step[] | undefined {
  const { canManage } = useMe();
  const month = toThisMonth(Date.now());
  const usage = useUsage(month, 'key').data;
  const machineHours = useTotals(month).machines?.hours;
  const keys = useApiKeys('').data;
  const instances = useInstances().data?.data;
  const backends = useBackends().data?.data;
  const members = useMembers().data;
  if (!usage || machineHours === undefined || !keys || !instances || !backends || !members) {
    return undefined;
  }
  const forOwners: Step[] = [
    {
      name: 'Add a backend',
      text: 'Connect vLLM, SGLang, Ollama or any server with OpenAI’s API, or pull weights.',
      href: '/models/add-backend',
      isDone: backends.some(({ kind }) => kind !== 'stand-in'),
    },
    {
      name: 'Invite someone',
      text: 'Give your team their own access, as owners, members or viewers.',
      href: '/team',
      isDone: members.length > 1,
    },
  ];
  return [
    {
      name: 'Chat with a model',
      text: 'Try a model in the playground, and copy the code of the chat.',
      href: '/playground',
      isDone: usage.some(({ group, totals }) => group === '' && succeeded(totals)),
    },
    {
      name: 'Create an API key',
      text: 'Give a program access. Keys work with the OpenAI libraries and the cloud API.',
      href: '/api-keys/new',
      // The server creates the first key by itself.
      isDone: keys.some(({ created_by }) => created_by !== null),
    },
    {
      name: 'Send a request',
      text: 'Run the code below with your key.',
      href: '/usage/requests',
      isDone: usage.some(({ group, totals }) => group !== '' && succeeded(totals)),
    },
    {
      name: 'Launch a machine',
      text: 'Start a Linux machine. Connect with SSH or from this dashboard.',
      href: '/machines/new',
      isDone: instances.length > 0 || machineHours > 0,
    },
    ...(canManage ? forOwners : []),
  ];
}
