# Pools that no environment has: every way to buy, with labels of one's own.
region = "us-east-1"
name   = "unusual"
zones  = ["us-east-1a", "us-east-1b"]

gpu_pools = {
  spot = {
    machine_type    = "g5.12xlarge"
    provisioning    = "spot"
    gpus_per_engine = 4
  }
  block = {
    machine_type            = "p5.48xlarge"
    zones                   = ["us-east-1b"]
    provisioning            = "capacity_block"
    capacity_reservation_id = "cr-1"
    labels                  = { team = "inference" }
  }
  reserved = {
    machine_type            = "g6e.48xlarge"
    zones                   = ["us-east-1a"]
    provisioning            = "reservation"
    capacity_reservation_id = "cr-2"
  }
}
