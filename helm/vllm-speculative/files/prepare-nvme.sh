#!/bin/sh
# Makes one file system of a node's empty NVMe disks, mounts it and makes a directory on it for the models. A disk that has
# anything on it is never touched. usage: prepare-nvme.sh MOUNT DIRECTORY USER:GROUP PATTERN...
set -eu
mount_point=$1
directory=$2
owner=$3
shift 3
label=vllm-models

hand_over() {
    mkdir -p "$directory"
    chown "$owner" "$directory"
    echo "$directory is ready: $(df -h "$mount_point" | tail -n 1)"
}

if mountpoint -q "$mount_point"; then
    hand_over
    exit 0
fi

# The file system of an earlier start of the same node, whose array a node does not always put together by itself.
mdadm --assemble --scan >/dev/null 2>&1 || true
if found=$(blkid -L "$label"); then
    echo "mounting $found again"
else
    disks=""
    for pattern in "$@"; do
        for name in $pattern; do
            [ -b "$name" ] || continue
            disk=$(readlink -f "$name")
            case " $disks " in *" $disk "*) continue ;; esac
            # blkid -p ends with 2 where it finds no signature of anything.
            status=0
            blkid -p "$disk" >/dev/null 2>&1 || status=$?
            if [ "$status" -ne 2 ]; then
                echo "$disk has something on it and is left alone"
                continue
            fi
            disks="$disks $disk"
        done
    done
    # shellcheck disable=SC2086 # one word for each disk
    set -- $disks
    if [ $# -eq 0 ]; then
        echo "no empty NVMe disk on this node: a node pool with raw local SSDs, or modelCache.hostPath.prepare.enabled false" >&2
        exit 1
    fi
    found=$1
    if [ $# -gt 1 ]; then
        found=/dev/md/$label
        mdadm --create "$found" --run --level=0 --raid-devices=$# "$@"
    fi
    mkfs.ext4 -q -L "$label" -E lazy_itable_init=1,lazy_journal_init=1 "$found"
fi
mkdir -p "$mount_point"
mount -o noatime,discard "$found" "$mount_point"
hand_over
