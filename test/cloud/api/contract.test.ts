// The traps of the contract: what real clients do and need, one test each.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { Filesystem, Image, Instance, SshKey } from '#cloud/schema.ts';
import { publicKey, startCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';

for (const database of databases) {
  describe(`the contract on ${database}`, () => {
    test('an instance has exactly the members clients know, and omits those without a value', async () => {
      const { launch, instance, settle } = await startCloud(database);
      const id = await launch();
      const booting = await instance(id);
      assert.deepEqual(Object.keys(booting).toSorted(), [
        'actions',
        'file_system_names',
        'id',
        'instance_type',
        'is_reserved',
        'region',
        'ssh_key_names',
        'status',
      ]);
      assert.match(id, /^[0-9a-f]{32}$/);
      assert.equal(booting.is_reserved, false);
      assert.deepEqual(booting.ssh_key_names, ['laptop']);
      assert.deepEqual(booting.region, { name: 'us-west-1', description: 'California, USA' });
      for (const action of ['migrate', 'rebuild', 'restart', 'cold_reboot', 'terminate'] as const) {
        assert.equal(booting.actions[action].available, false);
        assert.equal(booting.actions[action].reason_code, 'vm-has-not-launched');
      }
      await settle();
      const active = await instance(id);
      assert.deepEqual(Object.keys(active).toSorted(), [
        'actions',
        'file_system_names',
        'hostname',
        'id',
        'instance_type',
        'ip',
        'is_reserved',
        'private_ip',
        'region',
        'ssh_key_names',
        'status',
      ]);
      assert.equal(active.hostname, active.ip);
      assert.deepEqual(active.actions.restart, { available: true });
      assert.deepEqual(active.actions.cold_reboot, { available: true });
      assert.deepEqual(active.actions.terminate, { available: true });
    });

    test('a booting instance can be terminated once its machine was requested', async () => {
      const { launch, instance, cloud } = await startCloud(database);
      const id = await launch({ hostname: 'slow' });
      await cloud.reconciler.settle();
      const { status, actions } = await instance(id);
      assert.equal(status, 'booting');
      assert.deepEqual(actions.terminate, { available: true });
      assert.equal(actions.restart.available, false);
    });

    test('restarting a booting instance conflicts', async () => {
      const { launch, call } = await startCloud(database);
      const id = await launch();
      const { status, body } = await call('POST', '/instance-operations/restart', {
        instance_ids: [id],
      });
      assert.equal(status, 409);
      assert.equal(
        body.error.message,
        'The request conflicts with the current state of the resource.',
      );
    });

    test('one unknown id fails the whole operation', async () => {
      const { launchActive, instance, call } = await startCloud(database);
      const id = await launchActive();
      for (const operation of ['restart', 'terminate', 'power-cycle']) {
        const { status, body } = await call('POST', `/instance-operations/${operation}`, {
          instance_ids: [id, '0'.repeat(32)],
        });
        assert.equal(status, 404);
        assert.equal(body.error.message, 'Specified instance does not exist.');
      }
      const { status, actions } = await instance(id);
      assert.equal(status, 'active');
      assert.equal(actions.restart.available, true);
    });

    test('terminating an empty list, or an instance twice, succeeds', async () => {
      const { launchActive, call } = await startCloud(database);
      const path = '/instance-operations/terminate';
      const empty = await call('POST', path, { instance_ids: [] });
      assert.equal(empty.status, 200);
      assert.deepEqual(empty.body.data, { terminated_instances: [] });
      const id = await launchActive();
      for (let time = 0; time < 2; time++) {
        const { status, body } = await call<{ terminated_instances: Instance[] }>('POST', path, {
          instance_ids: [id, id],
        });
        assert.equal(status, 200);
        assert.equal(body.data.terminated_instances.length, 1);
      }
    });

    test('a path id that is not a UUID gets 400, an unknown one 404, and one with dashes is accepted', async () => {
      const { launch, call } = await startCloud(database);
      const id = await launch();
      for (const path of ['/instances/my-box', '/ssh-keys/x', '/firewall-rulesets/%2e%2e%2fx']) {
        const { status, body } = await call(path.startsWith('/ssh') ? 'DELETE' : 'GET', path);
        assert.equal(status, 400, path);
        assert.equal(body.error.code, 'global/invalid-parameters');
        assert.match(
          body.error.message,
          /^Error in request path at 'id': Input should be a valid UUID/,
        );
      }
      const unknown = await call('GET', `/instances/${'a'.repeat(32)}`);
      assert.equal(unknown.status, 404);
      assert.equal(unknown.body.error.code, 'global/object-does-not-exist');
      const dashed = id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-').toUpperCase();
      assert.equal((await call<Instance>('GET', `/instances/${dashed}`)).body.data.id, id);
      const bad = await call('POST', '/instance-operations/terminate', { instance_ids: ['x'] });
      assert.equal(bad.status, 400);
    });

    test('POST renames an instance, and an empty name removes its name', async () => {
      const { launch, call } = await startCloud(database);
      const path = `/instances/${await launch({ name: 'old' })}`;
      assert.equal((await call<Instance>('POST', path, { name: 'new' })).body.data.name, 'new');
      assert.equal((await call<Instance>('POST', path, {})).body.data.name, 'new');
      const { data } = (await call<Instance>('POST', path, { name: '' })).body;
      assert.equal('name' in data, false);
    });

    test('JSON is read whatever the content type, and without one', async () => {
      const { app, key } = await startCloud(database);
      const types = [undefined, 'text/plain;charset=UTF-8', 'application/x-www-form-urlencoded'];
      for (const [index, type] of types.entries()) {
        const { statusCode, body } = await app.inject({
          method: 'POST',
          url: '/api/v1/ssh-keys',
          headers: {
            authorization: `Basic ${key}`,
            ...(type === undefined ? {} : { 'content-type': type }),
          },
          payload: JSON.stringify({ name: `key-${index}`, public_key: publicKey }),
        });
        assert.equal(statusCode, 200, body);
      }
    });

    test('a DELETE may carry a content type and no body', async () => {
      const { app, key, addKey } = await startCloud(database);
      const { statusCode, body } = await app.inject({
        method: 'DELETE',
        url: `/api/v1/ssh-keys/${await addKey('second')}`,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      });
      assert.equal(statusCode, 200, body);
      assert.deepEqual(JSON.parse(body), { data: {} });
    });

    test('filesystems are listed at /file-systems and created at /filesystems', async () => {
      const { call } = await startCloud(database);
      const wrong = await call('POST', '/file-systems', { name: 'a', region: 'us-west-1' });
      assert.equal(wrong.status, 405);
      const { body } = await call<Filesystem>('POST', '/filesystems', {
        name: 'a',
        region: 'us-west-1',
      });
      assert.deepEqual(Object.keys(body.data).toSorted(), [
        'created',
        'created_by',
        'id',
        'is_in_use',
        'mount_point',
        'name',
        'region',
      ]);
      assert.equal(body.data.mount_point, '/lambda/nfs/a');
      assert.equal(body.data.created, '2026-01-01T00:00:00.000000+00:00');
      const list = await call<Filesystem[]>('GET', '/file-systems');
      assert.deepEqual(list.body.data, [body.data]);
      assert.equal((await call('GET', '/clusters')).status, 404);
    });

    test('an image has the same id in every region, and describes what it really is', async () => {
      const { call } = await startCloud(database);
      const { data } = (await call<Image[]>('GET', '/images')).body;
      const stack = data.filter(({ family }) => family === 'lambda-stack-24-04');
      assert.equal(stack.length, 17);
      assert.equal(new Set(stack.map(({ id }) => id)).size, 1);
      assert.match(stack[0]?.id ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      assert.match(stack[0]?.description ?? '', /Debian/);
      assert(data.some(({ family }) => family === 'host'));
    });

    test('regions are the codes that strict clients know', async () => {
      const { call } = await startCloud(database);
      const { data } = (await call<{ name: string }[]>('GET', '/regions')).body;
      assert.equal(data.length, 17);
      assert.deepEqual(data[0], { name: 'us-west-1', description: 'California, USA' });
    });

    test('a key in use cannot be deleted until its instance is terminating', async () => {
      const { launchActive, call, settle } = await startCloud(database);
      const id = await launchActive();
      const [key] = (await call<SshKey[]>('GET', '/ssh-keys')).body.data;
      const used = await call('DELETE', `/ssh-keys/${key?.id}`);
      assert.deepEqual(
        [used.status, used.body.error.code, used.body.error.message],
        [400, 'global/invalid-parameters', 'Key is currently in use, cannot delete'],
      );
      await call('POST', '/instance-operations/terminate', { instance_ids: [id] });
      assert.equal((await call('DELETE', `/ssh-keys/${key?.id}`)).status, 200);
      const { data } = (await call<Instance>('GET', `/instances/${id}`)).body;
      assert.deepEqual([data.status, data.ssh_key_names], ['terminating', ['laptop']]);
      await settle();
      const gone = (await call<Instance>('GET', `/instances/${id}`)).body.data;
      assert.equal(gone.status, 'terminated');
    });

    test('a base address that ends in a slash works', async () => {
      const { call } = await startCloud(database);
      assert.equal((await call('GET', '//instances')).status, 200);
      const wrong = await call('PUT', '//instances');
      assert.deepEqual([wrong.status, wrong.headers.allow], [405, 'GET, HEAD']);
    });

    test('the global ruleset can be read and changed, not deleted', async () => {
      const { call } = await startCloud(database);
      for (const method of ['DELETE', 'PUT']) {
        const { status, headers } = await call(method, '/firewall-rulesets/global');
        assert.deepEqual([status, headers.allow], [405, 'GET, HEAD, PATCH'], method);
      }
      const { headers } = await call('PUT', `/firewall-rulesets/${'0'.repeat(32)}`);
      assert.equal(headers.allow, 'GET, HEAD, PATCH, DELETE');
    });

    test('an instance gets a name and tags, each alone or both at once', async () => {
      const { launch, call } = await startCloud(database);
      const id = await launch();
      const change = async (body: object) =>
        (await call<Instance>('POST', `/instances/${id}`, body)).body.data;
      const red = [{ key: 'team', value: 'red' }];
      assert.deepEqual((await change({ tags: red })).tags, red);
      const named = await change({ name: 'box' });
      assert.deepEqual([named.name, named.tags], ['box', red]);
      const both = await change({ name: '', tags: [] });
      assert.deepEqual([both.name, both.tags], [undefined, undefined]);
      assert.equal((await change({})).id, id);
      const twice = await call('POST', `/instances/${id}`, { tags: [...red, ...red] });
      assert.deepEqual([twice.status, twice.body.error.code], [400, 'global/invalid-parameters']);
    });

    test('what this cloud never has is empty, not found or not offered', async () => {
      const { call } = await startCloud(database);
      for (const path of ['/maintenance_events', '/maintenance-events']) {
        const { body } = await call('GET', path);
        assert.deepEqual(body.data, { maintenance_events: [], page_token: null });
      }
      assert.deepEqual((await call('GET', '/tickets')).body.data, {
        tickets: [],
        page_token: null,
      });
      const id = '0'.repeat(32);
      const ticket = { subject: 'Help', description: 'It broke.', type: 'incident' };
      const cases: [string, string, object | undefined, number, string][] = [
        ['POST', '/tickets', ticket, 403, 'global/forbidden'],
        ['POST', '/tickets', {}, 400, 'global/invalid-parameters'],
        ['GET', `/tickets/${id}`, undefined, 404, 'global/not-found'],
        ['GET', '/tickets/42', undefined, 400, 'global/invalid-parameters'],
        ['PATCH', `/tickets/${id}`, { status: 'solved' }, 404, 'global/not-found'],
        ['GET', `/tickets/${id}/attachments`, undefined, 404, 'global/not-found'],
        ['GET', `/tickets/${id}/attachments/${id}/download`, undefined, 404, 'global/not-found'],
        ['POST', '/fabric', { name: 'x', region: 'us-west-1' }, 400, 'global/invalid-parameters'],
        ['POST', `/fabric/${id}`, { name: 'x' }, 404, 'global/not-found'],
        ['DELETE', `/fabric/${id}`, undefined, 404, 'global/not-found'],
      ];
      for (const [method, path, json, status, code] of cases) {
        const answer = await call(method, path, json);
        assert.deepEqual(
          [answer.status, answer.body.error.code],
          [status, code],
          `${method} ${path}`,
        );
        assert.equal(typeof answer.body.error.suggestion, 'string');
      }
    });

    test('a launch that is refused does not use up the next one', async () => {
      const limits = { requests: null, launches: { intervalMs: 10_000, burst: 1 } };
      const { call } = await startCloud(database, { limits });
      const body = {
        region_name: 'us-nowhere-1',
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['laptop'],
      };
      const launch = async (change: object = {}) =>
        (await call('POST', '/instance-operations/launch', { ...body, ...change })).status;
      assert.equal(await launch(), 400);
      assert.equal(await launch({ ssh_key_names: [] }), 400);
      assert.equal(await launch({ region_name: 'us-west-1' }), 200);
      assert.equal(await launch({ region_name: 'us-west-1' }), 429);
      assert.equal(await launch(), 429, 'a refusal for the rate gives nothing back');
    });

    test('launches are limited to one per ten seconds, other requests to one per second', async () => {
      const limits = {
        requests: { intervalMs: 1000, burst: 1 },
        launches: { intervalMs: 10_000, burst: 1 },
      };
      const cloud = await startCloud(database, { limits });
      const { call, clock } = cloud;
      const body = {
        region_name: 'us-west-1',
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['laptop'],
      };
      clock.turn(1000);
      assert.equal((await call('POST', '/instance-operations/launch', body)).status, 200);
      assert.equal((await call('GET', '/instances')).status, 429);
      clock.turn(1000);
      assert.equal((await call('GET', '/instances')).status, 200);
      clock.turn(1000);
      const soon = await call('POST', '/instance-operations/launch', body);
      assert.equal(soon.status, 429);
      assert.equal(soon.headers['retry-after'], '8');
      assert.equal(soon.body.error.code, 'global/too-many-requests');
      clock.turn(8000);
      assert.equal((await call('POST', '/instance-operations/launch', body)).status, 200);
    });
  });
}
