// What happened to one machine, newest first: what users did and how it fared, from the audit log, and when it booted,
// from the machine.

import { Text, Timeline } from '@mantine/core';
import type { AuditEvent } from '#accounts/schema.ts';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { actionNames } from '../audit-log/action-names.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { LoadMore } from '../components/filters.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { usePagedList } from '../queries.ts';

interface MachineEventsProps {
  id: string;
  /** Undefined if the machine was terminated. */
  instance: Instance | undefined;
  detail: InstanceDetail | undefined;
}

interface MachineEvent {
  id: string;
  title: string;
  /** Undefined for what is true now. */
  at?: string;
  text?: string | undefined;
}

export function MachineEvents({ id, instance, detail }: MachineEventsProps) {
  const path = '/dashboard/api/audit-events';
  // The status is part of the key, so that a change brings new events.
  const logged = usePagedList<AuditEvent>(`machine-events ${instance?.status}`, path, {
    resource_id: id,
  });
  const events = [
    ...toCurrent(instance, detail),
    ...(logged.data ?? []).map(toLogged),
    ...(detail?.booted_at ? [{ id: 'boot', title: 'Became active', at: detail.booted_at }] : []),
  ].sort((one, other) => toTime(other) - toTime(one));
  return (
    <>
      <ErrorNotice error={logged.error} onRetry={() => logged.refetch()} />
      <Timeline bulletSize={14} lineWidth={2} aria-label="Events">
        {events.map((event) => (
          <Timeline.Item key={event.id} title={event.title}>
            {event.text && (
              <Text size="sm" className="breakable">
                {event.text}
              </Text>
            )}
            <Text size="xs" c="dimmed">
              {event.at === undefined ? 'now' : <RelativeTime at={event.at} />}
            </Text>
          </Timeline.Item>
        ))}
      </Timeline>
      <LoadMore query={logged} />
    </>
  );
}

const toTime = ({ at }: MachineEvent) =>
  at === undefined ? Number.POSITIVE_INFINITY : Date.parse(at);

function toCurrent(
  instance: Instance | undefined,
  detail: InstanceDetail | undefined,
): MachineEvent[] {
  // An unhealthy machine has an event with its reason.
  const reason = instance?.status === 'unhealthy' ? null : detail?.last_error;
  return reason ? [{ id: 'now', title: 'Last error', text: reason }] : [];
}

/** Why a machine became unhealthy. */
const toReason = ({ details: { reason } }: AuditEvent) =>
  typeof reason === 'string' ? reason : undefined;

function toLogged(event: AuditEvent): MachineEvent {
  const { id, at, action, user_email, api_key_label } = event;
  const actor = user_email ?? (api_key_label && `API key “${api_key_label}”`);
  return {
    id,
    at,
    title: actionNames[action] ?? action,
    text: actor ? `By ${actor}` : toReason(event),
  };
}
