"""Provisions a cluster of one node and one of two with SkyPilot, runs commands on every node and tears both down.

It calls what `sky launch` and `sky down` call, with one step left out: SkyPilot installs its runtime (conda, Ray and its
own wheel) on the nodes from the internet, which the machines of a test don't reach. The connection that Ray's worker
would open to Ray's head is made by hand instead.
"""

import json
import pathlib
import sys

from sky import authentication, clouds, provision
from sky.backends import backend_utils
from sky.provision import provisioner
from sky.provision.lambda_cloud import lambda_utils
from sky.utils import resources_utils

RAY_PORT = 6380
SERVE = ("setsid perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(LocalPort=>%d,Listen=>5);"
         'while($c=$l->accept){print $c $c->peerhost;close $c}\' >/dev/null 2>&1 </dev/null &')
ASK = "for i in 1 2 3 4 5; do timeout 5 bash -c 'cat < /dev/tcp/%s/%d' && break; sleep 1; done"

address, region, instance_type = sys.argv[1:]
# The promised change of base address. SkyPilot has no setting for it.
lambda_utils.API_ENDPOINT = f'{address}/api/v1'


def provision_cluster(nodes: int) -> dict:
    name = resources_utils.ClusterName(f'test{nodes}', f'test{nodes}-on-cloud')
    config = authentication.setup_lambda_authentication({
        'cluster_name': name.name_on_cloud,
        'provider': {'type': 'external', 'module': 'sky.provision.lambda', 'region': region},
        'auth': {'ssh_user': 'ubuntu', 'ssh_private_key': authentication.auth_utils.get_or_generate_keys()[0]},
        'available_node_types': {'head': {'node_config': {'InstanceType': instance_type}}},
        'head_node_type': 'head',
    })
    cluster_yaml = pathlib.Path.home() / f'{name.display_name}.yml'
    cluster_yaml.write_text(json.dumps(config))
    try:
        provisioner.bulk_provision(clouds.Lambda(), clouds.Region(region), None, name, nodes, str(cluster_yaml),
                                   False, str(pathlib.Path.home() / 'logs'))
        info = provision.get_cluster_info('lambda', region, name.name_on_cloud, config['provider'])
        login = backend_utils.ssh_credential_from_yaml(str(cluster_yaml))
        provisioner.wait_for_ssh(info, login)
        head, *workers = provision.get_command_runners('lambda', info, **login)
        run = lambda runner, command: runner.run(command, require_outputs=True, stream_logs=False)[:2]
        hi = [run(runner, 'echo hi') for runner in [head, *workers]]
        run(head, SERVE % RAY_PORT)
        (head_ip, _), *worker_ips = info.ip_tuples()
        answers = [run(worker, ASK % (head_ip, RAY_PORT)) for worker in workers]
    finally:
        provisioner.teardown_cluster('lambda', name, True, config['provider'])
    left = provision.query_instances('lambda', name.display_name, name.name_on_cloud, config['provider'])
    return {'hi': hi, 'worker_ips': [ip for ip, _ in worker_ips], 'answers': answers, 'left': list(left)}


enabled, reason = clouds.Lambda.check_credentials(clouds.CloudCapability.COMPUTE)
assert enabled, reason
print(json.dumps([provision_cluster(nodes) for nodes in (1, 2)]))
