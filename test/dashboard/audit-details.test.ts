// Entries of the audit log are described in words: names and changes, no ids and no columns of tables.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toDetailsText } from '../../web/src/audit-log/details.ts';

const id = '0123456789abcdef0123456789abcdef';

describe('details of an audit event', () => {
  test('a machine is shown by its name, without its resource name', () => {
    const text = toDetailsText({
      resource_id: id,
      resource_name: 'trainer-1',
      details: {
        instance_lrn: `lrn:cloud:instance:${id}`,
        instance_type: 'cpu_1x_general',
        region: 'us-west-1',
      },
    });
    assert.equal(text, 'trainer-1 · type: cpu_1x_general · region: us-west-1');
  });

  test('a change shows only what differs', () => {
    const limits = { monthly_budget: 10, requests_per_minute: 60, tokens_per_minute: null };
    const text = toDetailsText({
      resource_id: id,
      resource_name: 'importer',
      details: {
        from: { label: 'importer', limits },
        to: { label: 'importer', limits: { ...limits, monthly_budget: 20, tokens_per_minute: 5 } },
      },
    });
    assert.equal(text, 'importer · monthly budget in $: 10 → 20 · tokens per minute: none → 5');
    const role = { from: 'member', to: 'viewer' };
    assert.equal(
      toDetailsText({ resource_id: id, resource_name: 'ann@example.com', details: role }),
      'ann@example.com · member → viewer',
    );
  });

  test('an id is shown only if it is a name', () => {
    const nothing = { resource_name: null, details: {} };
    assert.equal(toDetailsText({ ...nothing, resource_id: id }), '');
    assert.equal(toDetailsText({ ...nothing, resource_id: 'hermes3-8b/vllm' }), 'hermes3-8b/vllm');
    const added = { ...nothing, details: { url: 'http://10.0.0.5/v1' } };
    assert.equal(
      toDetailsText({ ...added, resource_id: 'hermes3-8b/vllm' }),
      'hermes3-8b/vllm · address: http://10.0.0.5/v1',
    );
  });
});
