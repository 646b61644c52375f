# The controller's role, with exactly the permissions that the controller uses. docs/cloud/aws.md
# explains each; remove those that your policies do not need.

locals {
  oidc_issuer = var.oidc_provider_arn == null ? "" : split("oidc-provider/", var.oidc_provider_arn)[1]

  trust = {
    PodIdentity = [{
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = {
        StringEquals = {
          "aws:RequestTag/eks-cluster-arn"            = "${local.arn}:eks:${local.region}:${local.account}:cluster/${var.cluster_name}"
          "aws:RequestTag/kubernetes-namespace"       = var.namespace
          "aws:RequestTag/kubernetes-service-account" = var.service_account
        }
      }
    }]
    IRSA = [{
      Effect    = "Allow"
      Principal = { Federated = var.oidc_provider_arn }
      Action    = "sts:AssumeRoleWithWebIdentity"
      Condition = {
        StringEquals = {
          "${local.oidc_issuer}:aud" = "sts.amazonaws.com"
          "${local.oidc_issuer}:sub" = "system:serviceaccount:${var.namespace}:${var.service_account}"
        }
      }
    }]
  }
}

resource "aws_iam_role" "controller" {
  name        = "${var.name}-controller"
  description = "Permissions of the Lastcall controller"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = local.trust[var.identity]
  })

  lifecycle {
    precondition {
      condition     = var.identity != "IRSA" || var.oidc_provider_arn != null
      error_message = "Set oidc_provider_arn, which IRSA needs."
    }
  }
}

resource "aws_iam_role_policy" "controller" {
  name = "lastcall"
  role = aws_iam_role.controller.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Everything"
        Effect = "Allow"
        Action = [
          "autoscaling:DescribeAutoScalingGroups",
          "autoscaling:DescribeAutoScalingInstances",
          "autoscaling:DescribeLifecycleHooks",
          "ec2:DescribeInstances",
          "ec2:DescribeInstanceStatus",
          "ec2:DescribeNetworkInterfaces",
          "ec2:DescribeSecurityGroups",
          "ec2:DescribeTags",
          "elasticloadbalancing:DescribeInstanceHealth",
          "elasticloadbalancing:DescribeLoadBalancers",
          "elasticloadbalancing:DescribeTags",
          "elasticloadbalancing:DescribeTargetGroups",
          "elasticloadbalancing:DescribeTargetHealth",
        ]
        Resource = "*"
      },
      {
        Sid    = "Groups"
        Effect = "Allow"
        Action = [
          "autoscaling:CompleteLifecycleAction",
          "autoscaling:DetachInstances",
          "autoscaling:RecordLifecycleActionHeartbeat",
          "autoscaling:TerminateInstanceInAutoScalingGroup",
        ]
        Resource  = "${local.arn}:autoscaling:${local.region}:${local.account}:autoScalingGroup:*:autoScalingGroupName/*"
        Condition = { StringEquals = local.cluster_tag }
      },
      {
        Sid       = "Instances"
        Effect    = "Allow"
        Action    = ["ec2:TerminateInstances"]
        Resource  = "${local.arn}:ec2:${local.region}:${local.account}:instance/*"
        Condition = { StringEquals = local.cluster_tag }
      },
      {
        Sid    = "Queue"
        Effect = "Allow"
        Action = [
          "sqs:ChangeMessageVisibility",
          "sqs:DeleteMessage",
          "sqs:ReceiveMessage",
        ]
        Resource = aws_sqs_queue.notices.arn
      },
      {
        Sid    = "LoadBalancers"
        Effect = "Allow"
        Action = [
          "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
          "elasticloadbalancing:DeregisterTargets",
          "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
          "elasticloadbalancing:RegisterTargets",
        ]
        Resource = [
          "${local.arn}:elasticloadbalancing:${local.region}:${local.account}:loadbalancer/*",
          "${local.arn}:elasticloadbalancing:${local.region}:${local.account}:targetgroup/*",
        ]
      },
      {
        Sid    = "Quarantine"
        Effect = "Allow"
        Action = ["ec2:ModifyNetworkInterfaceAttribute"]
        Resource = [
          "${local.arn}:ec2:${local.region}:${local.account}:instance/*",
          "${local.arn}:ec2:${local.region}:${local.account}:network-interface/*",
          "${local.arn}:ec2:${local.region}:${local.account}:security-group/*",
        ]
      },
      {
        Sid      = "Topic"
        Effect   = "Allow"
        Action   = ["sns:GetTopicAttributes", "sns:Publish"]
        Resource = aws_sns_topic.departures.arn
      },
      {
        Sid      = "Function"
        Effect   = "Allow"
        Action   = ["lambda:InvokeFunction"]
        Resource = "${local.arn}:lambda:${local.region}:${local.account}:function:${var.name}-responder"
      },
    ]
  })
}

resource "aws_eks_pod_identity_association" "controller" {
  count = var.identity == "PodIdentity" ? 1 : 0

  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
  tags            = local.tags
}

locals {
  # The chart refuses a null where it expects a text.
  controller_image = var.controller_image == null ? {} : { for key, value in var.controller_image : key => value if value != null }
  agent_image      = var.agent_image == null ? {} : { for key, value in var.agent_image : key => value if value != null }
}

resource "helm_release" "lastcall" {
  count = var.release_chart == null ? 0 : 1

  name             = "lastcall"
  chart            = var.release_chart
  namespace        = var.namespace
  create_namespace = true

  values = [yamlencode({
    image = local.controller_image
    agent = {
      image = local.agent_image
    }
    serviceAccount = {
      name        = var.service_account
      annotations = var.identity == "IRSA" ? { "eks.amazonaws.com/role-arn" = aws_iam_role.controller.arn } : {}
    }
    controller = {
      options = merge(
        {
          "sqs-queue-url" = aws_sqs_queue.notices.url
          "sqs-unknown"   = "Delete"
        },
        length(var.action_hosts) == 0 ? {} : { "action-hosts" = join(",", var.action_hosts) },
      )
    }
    policies = var.policies
  }), yamlencode(var.release_values)]

  lifecycle {
    precondition {
      condition     = var.controller_image != null && (var.agent_image != null || try(var.release_values.agent.enabled, true) == false)
      error_message = "Set controller_image, and agent_image unless release_values disables the agents: no image of Lastcall is published."
    }
  }

  # Pods get credentials, and the permissions of their role, only if these exist before they start.
  depends_on = [
    aws_eks_pod_identity_association.controller,
    aws_iam_role_policy.controller,
  ]
}
