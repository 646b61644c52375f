terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0"
    }
  }
}

data "aws_caller_identity" "current" {}

data "aws_region" "current" {}

data "aws_partition" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  region    = data.aws_region.current.region
  partition = data.aws_partition.current.partition
  arn       = "arn:${local.partition}"

  # The tag of managed node groups and eksctl's groups; add it to groups that you create yourself.
  cluster_tag = { "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = "owned" }

  tags = merge(var.tags, { "lastcall-cluster" = var.cluster_name })
}
