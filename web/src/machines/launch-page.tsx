// Launches one or several machines: the type, where, who may log in, and what runs at the first boot. A summary beside the
// form has the price, and the same launch as commands.

import { Button, Paper, Stack, Text, Textarea } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { useLocation } from 'wouter';
import { handleSubmit } from '../browser/form-data.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { LeaveGuard } from '../components/leave-guard.tsx';
import { NetworkNotice } from '../components/network-notice.tsx';
import { Page } from '../components/page.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { findFieldError } from '../field-errors.ts';
import { useInstanceTypes } from '../queries.ts';
import { instancesKey } from './instances.ts';
import { LaunchAccess } from './launch-access.tsx';
import {
  emptyChoice,
  type FieldErrors,
  findMissing,
  type LaunchChoice,
  toLaunch,
} from './launch-choice.ts';
import { LaunchLocation } from './launch-location.tsx';
import { launchMany } from './launch-many.ts';
import { saveLastKey } from './launch-memory.ts';
import { LaunchSummary } from './launch-summary.tsx';
import { LaunchTemplates } from './launch-templates.tsx';
import { LaunchTypes } from './launch-types.tsx';
import './machines.css';

/** Fields of the launch that show their own errors. */
const markedFields = new Set(['name', 'ssh_key_names', 'tags', 'user_data']);
/** The API's limit is larger; a file of this size is no script any more. */
const maxUserData = 65_536;

export default function LaunchPage() {
  const { canUse } = useMe();
  return (
    <Page
      title="Launch machine"
      description="A Linux machine of your own, ready in seconds. You pay by the second until you terminate it."
    >
      {canUse ? (
        <LaunchForm />
      ) : (
        <EmptyState title="Viewers can’t launch machines">
          An owner can change your role on the Team page.
        </EmptyState>
      )}
    </Page>
  );
}

function LaunchForm() {
  const [choice, setChoice] = useState(emptyChoice);
  const [edited, setEdited] = useState(false);
  const types = useInstanceTypes();
  const change = useCallback(
    (changes: Partial<LaunchChoice>) => setChoice((before) => ({ ...before, ...changes })),
    [],
  );
  const { launch, launched } = useLaunch((failedAfter) =>
    setChoice((before) => ({ ...before, count: before.count - failedAfter })),
  );
  const missing = findMissing(choice);
  const part = { types: types.data?.data, choice, onChange: change };
  const about = findFieldError(launch.error);
  const field = about?.path[0] ?? '';
  const fieldErrors: FieldErrors =
    about !== undefined && markedFields.has(field) ? { [field]: about.text } : {};
  const type = types.data?.data[choice.type ?? '']?.instance_type;
  return (
    <form
      className="launch"
      onSubmit={handleSubmit(() => missing === null && launch.mutate(choice))}
      onChange={() => setEdited(true)}
    >
      <LeaveGuard
        unsaved={edited && !launch.isPending && !launch.isSuccess}
        page="/machines/new"
        title="Discard this launch?"
        warning="What you chose here has not been launched or saved as a template."
      />
      <Stack gap="xl" className="launch-parts">
        <ErrorNotice error={types.error} onRetry={() => types.refetch()} />
        <LaunchTemplates choice={choice} onChoose={setChoice} />
        <Section title="Machine type">
          <LaunchTypes {...part} />
        </Section>
        {choice.type !== null && (
          <Section title="Region, image and storage">
            <NetworkNotice region={choice.region} />
            <LaunchLocation {...part} />
          </Section>
        )}
        <Section title="Name and SSH key">
          <LaunchAccess {...part} errors={fieldErrors} />
        </Section>
        <Section title="User data">
          <Textarea
            aria-label="User data"
            description="A shell script or cloud-config that runs as root at the first boot. Optional. What it prints is in the boot log. Sandboxes don’t install packages of cloud-config."
            placeholder={'#!/bin/sh\napt-get update'}
            autosize
            minRows={3}
            maxRows={14}
            maxLength={maxUserData}
            error={fieldErrors.user_data}
            classNames={{ input: 'user-data' }}
            value={choice.userData}
            onChange={(event) => change({ userData: event.currentTarget.value })}
          />
        </Section>
      </Stack>
      <Paper withBorder p="md" className="launch-summary" component="aside" aria-label="Summary">
        <LaunchSummary type={type} choice={choice}>
          {Object.keys(fieldErrors).length === 0 && <ErrorNotice error={launch.error} />}
          {Object.keys(fieldErrors).length > 0 && (
            <Text size="sm" c="var(--mantine-color-error)" role="alert">
              The launch was refused. Correct the marked fields.
            </Text>
          )}
          <Button type="submit" disabled={missing !== null} loading={launch.isPending} fullWidth>
            Launch
          </Button>
          <Text size="xs" c="dimmed" role="status">
            {launch.isPending && choice.count > 1
              ? `${launched} of ${choice.count} launched`
              : missing}
          </Text>
        </LaunchSummary>
      </Paper>
    </form>
  );
}

/**
 * Launches the chosen machines and opens the page of the only one, or the list. If one launch fails, `onFailure` gets
 * the number of machines that are starting: a second attempt must launch only the others.
 */
function useLaunch(onFailure: (launched: number) => void) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [launched, setLaunched] = useState(0);
  const [earlier, setEarlier] = useState(0);
  const launch = useMutation({
    async mutationFn(choice: LaunchChoice) {
      let done = 0;
      setLaunched(0);
      try {
        return await launchMany(toLaunch(choice), { count: choice.count, earlier }, (now) => {
          done = now;
          setLaunched(now);
        });
      } catch (error) {
        setEarlier(earlier + done);
        onFailure(done);
        throw error;
      }
    },
    // Even after a failure some machines may be starting.
    onSettled: () => client.invalidateQueries({ queryKey: instancesKey }),
    onSuccess(ids, { count, sshKey }) {
      if (sshKey !== null) saveLastKey(sshKey);
      const message = count === 1 ? 'Machine is starting.' : `${count} machines are starting.`;
      notifications.show({ message });
      // After this render, in which the guard learns that nothing is unsaved any more.
      setTimeout(() => navigate(ids.length === 1 ? `/machines/${ids[0]}` : '/machines'));
    },
  });
  return { launch, launched };
}
