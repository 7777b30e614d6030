# What up, down and status share. Sourced.
# shellcheck shell=bash disable=SC2034
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
repo="$(cd "$here/../.." && pwd)"
bin="${SPECDEC_KUBERNETES:-$repo/.tools/kubernetes}"
# Short, because sockets lie in it, and the same for every checkout: one cluster a machine.
dir="$(realpath -m "${SPECDEC_STATE:-/var/lib/vllm-speculative}")"
node=local-node
# The API server and the node live on an address of their own: pods reach it, nothing outside the machine does.
ip=10.245.0.1
dns=10.96.0.10
daemons=(containerd etcd apiserver controller-manager scheduler kubelet kube-proxy)
# What kubelet, kube-proxy and the CNI bridge set.
sysctls=(net.ipv4.ip_forward net.ipv4.conf.all.route_localnet vm.overcommit_memory vm.panic_on_oom kernel.panic
  kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes net.netfilter.nf_conntrack_max
  net.netfilter.nf_conntrack_tcp_timeout_established net.netfilter.nf_conntrack_tcp_timeout_close_wait
  net.bridge.bridge-nf-call-iptables)
# What kubelet, containerd and CNI make outside of the state folder.
outside=(/run/containerd /var/lib/cni /var/log/containers /var/log/pods /var/lib/kubelet /usr/libexec/kubernetes /etc/cni /opt/cni
  /run/netns /run/xtables.lock)

# Everything that up starts carries a mark in its environment, so that it is found even when nothing was written down.
# Read without another program: a signal to the whole group would end that program, and the answer would be wrong.
marked() { # PID [NAME]: up started the process, here, as that daemon
  local -a variables
  { mapfile -d '' -t variables < "/proc/$1/environ"; } 2> /dev/null || return 1
  [[ "${variables[*]}" == *"SPECDEC_DAEMON=$dir/${2:-}"* ]]
}
runs() { # NAME
  local pid
  { read -r pid < "$dir/run/$1.pid"; } 2> /dev/null && marked "$pid" "$1"
}
one_at_a_time() { # holds a lock until the script ends; up calls down while it holds it
  [ -z "${SPECDEC_LOCKED:-}" ] || return 0
  # The folder that the state lies in: two checkouts with one state meet here, two states do not.
  mkdir -p "$(dirname "$dir")"
  exec 9< "$(dirname "$dir")"
  flock -n 9 || { echo "$1: up or down runs already" >&2 && exit 2; }
  export SPECDEC_LOCKED=1
}
kubectl() { "$bin/kubectl" --kubeconfig "$dir/admin.kubeconfig" "$@"; }
ctr() { command ctr --address "$dir/run/containerd.sock" --namespace k8s.io "$@"; }
