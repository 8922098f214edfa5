// The people of the account, and what concerns only oneself: password and sessions.

import { Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { Invitations } from './invitations.tsx';
import { Members } from './members.tsx';
import { PasswordForm } from './password-form.tsx';
import { Sessions } from './sessions.tsx';

export default function Team() {
  const { canManage } = useMe();
  return (
    <Page title="Team" description="A viewer sees, a member uses, an owner manages.">
      <Section title="People">
        <Members />
      </Section>
      {canManage && (
        <Section
          title="Invitations"
          text="A link lets one person join. Send it yourself; nothing is mailed."
        >
          <Invitations />
        </Section>
      )}
      <Section title="Your password" text="Changing it signs out your other sessions.">
        <PasswordForm />
      </Section>
      <Section title="Your sessions" text="Where you are signed in.">
        <Sessions />
      </Section>
    </Page>
  );
}

interface SectionProps {
  title: string;
  text?: string;
  children: ReactNode;
}

const Section = ({ title, text, children }: SectionProps) => (
  <Stack component="section" gap="sm" mt="sm" aria-label={title}>
    <div>
      <Title order={2} size="h4">
        {title}
      </Title>
      {text && (
        <Text size="sm" c="dimmed">
          {text}
        </Text>
      )}
    </div>
    {children}
  </Stack>
);
