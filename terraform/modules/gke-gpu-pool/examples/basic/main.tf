# Two nodes of eight H100s at most, none while nothing runs, and an L4 pool beside them.
provider "google" {
  project = "example-project"
  region  = "us-central1"
}

module "h100" {
  source = "../.."

  project_id      = "example-project"
  cluster         = "inference"
  region          = "us-central1"
  name            = "h100"
  zones           = ["us-central1-a", "us-central1-c"]
  machine_type    = "a3-highgpu-8g"
  gpus_per_engine = 2
  service_account = "inference-nodes@example-project.iam.gserviceaccount.com"
}

module "l4" {
  source = "../.."

  project_id      = "example-project"
  cluster         = "inference"
  region          = "us-central1"
  name            = "l4"
  zones           = ["us-central1-a"]
  machine_type    = "g2-standard-48"
  provisioning    = "spot"
  service_account = "inference-nodes@example-project.iam.gserviceaccount.com"
}
