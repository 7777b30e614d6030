data "aws_partition" "this" {}

data "aws_caller_identity" "this" {}

data "aws_region" "this" {}

locals {
  policy_prefix = "arn:${data.aws_partition.this.partition}:iam::aws:policy"

  # Who a pod is: EKS Pod Identity hands the role to the service account that an association names.
  assume_by_pods = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = "pods.eks.amazonaws.com" }
    }]
  })
}

# Encrypts Secrets in etcd, and the logs.
resource "aws_kms_key" "this" {
  description         = "Secrets and logs of the EKS cluster ${var.name}"
  enable_key_rotation = true
  tags                = var.tags

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Account"
        Effect    = "Allow"
        Action    = "kms:*"
        Resource  = "*"
        Principal = { AWS = "arn:${data.aws_partition.this.partition}:iam::${data.aws_caller_identity.this.account_id}:root" }
      },
      {
        Sid       = "Logs"
        Effect    = "Allow"
        Action    = ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"]
        Resource  = "*"
        Principal = { Service = "logs.${data.aws_region.this.name}.amazonaws.com" }
        Condition = {
          ArnLike = {
            "kms:EncryptionContext:aws:logs:arn" = "arn:${data.aws_partition.this.partition}:logs:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:log-group:/aws/*/${var.name}/*"
          }
        }
      },
    ]
  })
}

resource "aws_iam_role" "cluster" {
  name = "${var.name}-cluster"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = "eks.amazonaws.com" }
    }]
  })
  tags = var.tags
}

resource "aws_iam_role_policy_attachment" "cluster" {
  role       = aws_iam_role.cluster.name
  policy_arn = "${local.policy_prefix}/AmazonEKSClusterPolicy"
}

resource "aws_iam_role" "node" {
  name = "${var.name}-node"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
  tags = var.tags
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset(["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"])

  role       = aws_iam_role.node.name
  policy_arn = "${local.policy_prefix}/${each.value}"
}

resource "aws_iam_role" "ebs_csi" {
  count = contains(keys(var.addons), "aws-ebs-csi-driver") ? 1 : 0

  name               = "${var.name}-ebs-csi"
  assume_role_policy = local.assume_by_pods
  tags               = var.tags
}

resource "aws_iam_role_policy_attachment" "ebs_csi" {
  count = contains(keys(var.addons), "aws-ebs-csi-driver") ? 1 : 0

  role       = aws_iam_role.ebs_csi[0].name
  policy_arn = "${local.policy_prefix}/service-role/AmazonEBSCSIDriverPolicy"
}

resource "aws_iam_role" "cluster_autoscaler" {
  count = var.cluster_autoscaler ? 1 : 0

  name               = "${var.name}-cluster-autoscaler"
  assume_role_policy = local.assume_by_pods
  tags               = var.tags
}

resource "aws_iam_role_policy" "cluster_autoscaler" {
  count = var.cluster_autoscaler ? 1 : 0

  name = "scale"
  role = aws_iam_role.cluster_autoscaler[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Action = [
          "autoscaling:DescribeAutoScalingGroups",
          "autoscaling:DescribeAutoScalingInstances",
          "autoscaling:DescribeLaunchConfigurations",
          "autoscaling:DescribeScalingActivities",
          "ec2:DescribeImages",
          "ec2:DescribeInstanceTypes",
          "ec2:DescribeLaunchTemplateVersions",
          "ec2:GetInstanceTypesFromInstanceRequirements",
          "eks:DescribeNodegroup",
        ]
        Resource = "*"
      },
      {
        Effect   = "Allow"
        Action   = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
        Resource = "*"
        # Node groups of this cluster alone.
        Condition = { StringEquals = { "aws:ResourceTag/k8s.io/cluster-autoscaler/${var.name}" = "owned" } }
      },
    ]
  })
}

resource "aws_eks_pod_identity_association" "cluster_autoscaler" {
  count = var.cluster_autoscaler ? 1 : 0

  cluster_name    = aws_eks_cluster.this.name
  namespace       = "kube-system"
  service_account = "cluster-autoscaler"
  role_arn        = aws_iam_role.cluster_autoscaler[0].arn
  tags            = var.tags
}

resource "aws_iam_role" "workload" {
  for_each = var.pod_identities

  name_prefix        = "${substr(var.name, 0, 20)}-${substr(each.key, 0, 16)}-"
  assume_role_policy = local.assume_by_pods
  tags               = var.tags
}

resource "aws_iam_role_policy" "workload" {
  for_each = var.pod_identities

  name = "read"
  role = aws_iam_role.workload[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      length(each.value.secret_arns) == 0 ? [] : [{
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]
        Resource = each.value.secret_arns
      }],
      length(each.value.bucket_arns) == 0 ? [] : [{
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:ListBucket"]
        Resource = flatten([for arn in each.value.bucket_arns : [arn, "${arn}/*"]])
      }],
    )
  })
}

resource "aws_eks_pod_identity_association" "workload" {
  for_each = var.pod_identities

  cluster_name    = aws_eks_cluster.this.name
  namespace       = each.value.namespace
  service_account = each.value.service_account
  role_arn        = aws_iam_role.workload[each.key].arn
  tags            = var.tags
}
