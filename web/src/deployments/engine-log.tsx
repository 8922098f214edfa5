// The last lines that the engine of a deployment printed.

import { Skeleton } from '@mantine/core';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { toEmptyLogText } from '#lib/text/deployment-log-text.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Section } from '../components/section.tsx';
import { useEngineLog } from './deployments.ts';

export function EngineLog({ deployment }: { deployment: DeploymentView }) {
  const log = useEngineLog(deployment.name);
  return (
    <Section title="Engine log" description="The last 50 lines of the newest replica.">
      {log.isPending && <Skeleton h={160} aria-busy="true" />}
      <ErrorNotice error={log.error} onRetry={() => log.refetch()} />
      {log.data && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a long log scrolls, which the keyboard must reach
        <pre className="code-block log" data-live tabIndex={0}>
          <code>{log.data.data.lines.join('\n') || toEmptyLogText(deployment)}</code>
        </pre>
      )}
    </Section>
  );
}
