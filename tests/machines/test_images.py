# SPDX-License-Identifier: Apache-2.0
"""Container images on machines with our units: the sandboxed controller looks names up, and a node trusts a registry as its host does."""

from __future__ import annotations

import json

from cluster import Cluster
from machine import Failed, Machine

PORT = 5000

#: A registry over TLS, whose certificate an authority signs that no machine knows, and an image with one shell, made of the machine's own.
SCRIPT = """set -e
mkdir -p /srv/registry /srv/tree/bin /srv/tree/etc && cd /srv/registry
openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj '/CN=authority of tests' -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj '/CN=registry' -keyout key.pem -out request 2>/dev/null
printf 'subjectAltName=IP:{address}' >names
openssl x509 -req -in request -CA ca.crt -CAkey ca.key -CAcreateserial -days 9 -extfile names -out cert.pem 2>/dev/null
cat >config.yml <<END
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: /srv/registry/store}}}}
http: {{addr: "{address}:{port}", tls: {{certificate: /srv/registry/cert.pem, key: /srv/registry/key.pem}}}}
END
systemd-run --quiet --unit registry docker-registry serve /srv/registry/config.yml
for program in sh cat id; do
    for file in $(readlink -f /bin/$program) $(ldd /bin/$program | grep -o '/[^ ]*'); do
        mkdir -p /srv/tree$(dirname $file) && cp -L $file /srv/tree$file
    done
    [ -e /srv/tree/bin/$program ] || cp -L /bin/$program /srv/tree/bin/$program
done
echo of the image >/srv/tree/etc/image
umoci init --layout layout && umoci new --image layout:one && umoci insert --image layout:one /srv/tree /
umoci config --image layout:one --config.env PATH=/bin:/usr/bin --config.env OF_IMAGE=yes
mkdir certs && cp ca.crt certs
for try in $(seq 20); do
    skopeo copy --quiet --dest-cert-dir certs oci:layout:one docker://{address}:{port}/tools:1 && exit
    sleep 0.5
done
systemctl status registry
exit 1
"""


def start_registry(host: Machine) -> str:
    """A registry on a machine, and the name of the image in it."""
    host.run("bash -s", stdin=SCRIPT.format(address=host.address, port=PORT), patience=600)
    return f"{host.address}:{PORT}/tools:1"


def test_a_job_runs_in_an_image_of_a_registry_with_an_authority_of_its_own(cluster: Cluster) -> None:
    host = cluster.start_controller()
    other = cluster.machine()
    image = start_registry(host)
    cluster.join(other)
    assert cluster.nodes()[other.name]["labels"]["images"]
    words = f"submit -o json --image {image} -- sh -c 'cat /etc/image; id -u; echo $OF_IMAGE $RANK'"
    try:
        raise AssertionError(cluster.gpuctl(words))
    except Failed as failed:
        assert f"the controller cannot look at image {image}" in str(failed) and "certificate" in str(failed), failed
    certificate = host.run("cat /srv/registry/ca.crt")
    for machine in (host, other):
        machine.write(f"/etc/containers/certs.d/{host.address}:{PORT}/ca.crt", certificate)
    cluster.gpuctl("token create --owner ann --out ~/ann.token")
    job = str(json.loads(host.run(f"GPUCTL_TOKEN_FILE=~/ann.token gpuctl {words}"))["id"])
    ended = cluster.wait_for(job)
    assert ended["state"] == "SUCCEEDED", (ended, cluster.ask(f"logs {job} --rank 0 --stream stderr"))
    assert cluster.output(job) == ["of", "the", "image", other.run("id -u ann").strip(), "yes", "0"]
    assert ended["spec"]["image"].startswith(f"{image}@sha256:")
