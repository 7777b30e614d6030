# Both providers ask for a fresh token whenever they need one: an installation outlives a token that was fetched at its start.
locals {
  token = {
    gke = { command = "gke-gcloud-auth-plugin", args = [] }
    eks = { command = "aws", args = ["eks", "get-token", "--cluster-name", local.cluster.name, "--region", local.cluster.location] }
  }[local.cluster.cloud]
}

provider "helm" {
  kubernetes = {
    host                   = local.cluster.host
    cluster_ca_certificate = local.cluster.ca_certificate

    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = local.token.command
      args        = local.token.args
    }
  }
}

provider "kubernetes" {
  host                   = local.cluster.host
  cluster_ca_certificate = local.cluster.ca_certificate

  exec {
    api_version = "client.authentication.k8s.io/v1beta1"
    command     = local.token.command
    args        = local.token.args
  }
}
