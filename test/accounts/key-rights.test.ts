// No key has more rights than the person who created it has at that moment, whatever happens to both.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { type Role, roles } from '#accounts/principal.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const api = '/dashboard/api';

interface Person {
  id: string;
  session: SessionFetch;
  role: Role;
  isGone: boolean;
}

interface Key {
  id: string;
  key: string;
  /** Whose rights bound it. */
  creator: Person;
  isRevoked: boolean;
}

type Step =
  | { kind: 'role'; person: number; role: Role }
  | { kind: 'create'; person: number }
  | { kind: 'revoke'; key: number }
  | { kind: 'remove'; person: number; keys: 'keep' | 'revoke' };

const person = fc.nat(1);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('role' as const),
        person,
        role: fc.constantFrom(...roles),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('create' as const), person }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('revoke' as const), key: fc.nat(9) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('remove' as const),
        person,
        keys: fc.constantFrom('keep' as const, 'revoke' as const),
      }),
    },
  ),
  { minLength: 3, maxLength: 12 },
);

for (const database of bothDatabases)
  describe(`the rights of keys on ${database}`, () => {
    let server: TestServer;
    let owner: Person;
    let invited = 0;

    before(async () => {
      server = await startTestServer({ database });
      owner = await toPerson(await server.join(), 'owner');
    });

    async function toPerson(session: SessionFetch, role: Role): Promise<Person> {
      const { id } = (await (await session(`${api}/me`)).json()) as { id: string };
      return { id, session, role, isGone: false };
    }

    async function invite(): Promise<Person> {
      const response = await owner.session(`${api}/invitations`, { json: { role: 'member' } });
      const { link } = (await response.json()) as { link: string };
      return toPerson(await server.joinBy(link, `person${++invited}@example.com`), 'member');
    }

    async function take(step: Step, people: Person[], keys: Key[]): Promise<void> {
      const one = 'person' in step ? (people[step.person] as Person) : owner;
      if (one.isGone) return;
      switch (step.kind) {
        case 'role': {
          const response = await owner.session(`${api}/members/${one.id}`, {
            method: 'PATCH',
            json: { role: step.role },
          });
          const { api_keys } = (await response.json()) as { api_keys: { id: string }[] };
          const isTurned = (one.role === 'viewer') !== (step.role === 'viewer');
          one.role = step.role;
          const affected = keys.filter(({ creator, isRevoked }) => creator === one && !isRevoked);
          assert.deepEqual(
            api_keys.map(({ id }) => id).sort(),
            isTurned ? affected.map(({ id }) => id).sort() : [],
          );
          return;
        }
        case 'create': {
          const response = await one.session(`${api}/api-keys`, { json: { label: 'a key' } });
          assert.equal(response.status, one.role === 'viewer' ? 403 : 200);
          if (response.status !== 200) return;
          const { id, key } = (await response.json()) as { id: string; key: string };
          keys.push({ id, key, creator: one, isRevoked: false });
          return;
        }
        case 'revoke': {
          const key = keys[step.key];
          if (key === undefined || key.isRevoked) return;
          await owner.session(`${api}/api-keys/${key.id}`, { method: 'DELETE' });
          key.isRevoked = true;
          return;
        }
        case 'remove': {
          const path = `${api}/members/${one.id}?keys=${step.keys}`;
          assert.equal((await owner.session(path, { method: 'DELETE' })).status, 200);
          one.isGone = true;
          for (const key of keys.filter(({ creator }) => creator === one)) {
            if (step.keys === 'keep') key.creator = owner;
            else key.isRevoked = true;
          }
        }
      }
    }

    /** A request that is refused for what it says, if the key may make it. */
    async function check({ key, creator, isRevoked }: Key): Promise<void> {
      const headers = { authorization: `Bearer ${key}` };
      const statusOf = async (path: string, init: object = {}) =>
        (await server.fetch(path, { headers, ...init })).status;
      const isViewer = creator.role === 'viewer';
      for (const path of ['/v1/chat/completions', '/api/v1/ssh-keys'])
        assert.equal(await statusOf(path, { json: {} }), isRevoked ? 401 : isViewer ? 403 : 400);
      assert.equal(await statusOf('/v1/models'), isRevoked ? 401 : 200);
    }

    test('are never more than those of the person who created it', () =>
      fc.assert(
        fc.asyncProperty(steps, async (taken) => {
          const people = [await invite(), await invite()];
          const keys: Key[] = [];
          for (const step of taken) {
            await take(step, people, keys);
            for (const key of keys) await check(key);
          }
        }),
        { seed: propertySeed, numRuns: propertyRuns(40) },
      ));
  });
