// Says where machines have no internet access, why, and which command changes it. The sentences come from the hosts.

import { Alert, Code, Text } from '@mantine/core';
import IconWorldOff from '@tabler/icons-react/dist/esm/icons/IconWorldOff.mjs';
import type { NetworkNotice as Notice } from '#cloud/hosts/schema.ts';
import { useList } from '../queries.ts';

/** Shows the notices of one region, or of all. */
export function NetworkNotice({ region = null }: { region?: string | null }) {
  const notices = useList<Notice>(['network-notices'], '/dashboard/api/network-notices');
  const shown = notices.data?.data.filter((one) => region === null || one.region === region) ?? [];
  if (shown.length === 0) return null;
  return (
    <Alert role="note" variant="default" icon={<IconWorldOff aria-hidden />} title="No network">
      {shown.map(({ region: where, message }) => (
        <Text key={`${where} ${message}`} size="sm" className="breakable">
          {where}: <WithCode text={message} />
        </Text>
      ))}
    </Alert>
  );
}

/** Text in which backticks mark commands. */
const WithCode = ({ text }: { text: string }) =>
  text
    .split('`')
    // Every second part is between backticks.
    .map((part, index) => (index % 2 === 1 ? <Code key={part}>{part}</Code> : part));
