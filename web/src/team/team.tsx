// The people of the account, and the user's own password and sessions.

import { Page } from '../components/page.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { Invitations } from './invitations.tsx';
import { Members } from './members.tsx';
import { PasswordForm } from './password-form.tsx';
import { Sessions } from './sessions.tsx';

export default function Team() {
  const { canManage } = useMe();
  return (
    <Page
      title="Team"
      description="Viewers can view, members can use, and owners can manage everything."
    >
      <Section title="People">
        <Members />
      </Section>
      {canManage && (
        <Section
          title="Invitations"
          description="An invitation link lets one person join. Send the link yourself: no email is sent."
        >
          <Invitations />
        </Section>
      )}
      <Section
        title="Your password"
        description="Changing your password signs you out of your other sessions."
      >
        <PasswordForm />
      </Section>
      <Section title="Your sessions" description="Where you are signed in.">
        <Sessions />
      </Section>
    </Page>
  );
}
