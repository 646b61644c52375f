# The function that runs the configured actions around a departure. It is invoked by the
# controller's actions of the type lambda, by your own code, or by EventBridge.

locals {
  responder = var.responder_zip == null ? 0 : 1
}

resource "aws_iam_role" "responder" {
  count = local.responder

  name        = "${var.name}-responder"
  description = "Permissions of the Lastcall responder"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "responder" {
  count = local.responder

  name = "lastcall"
  role = aws_iam_role.responder[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Everything"
        Effect = "Allow"
        Action = [
          "autoscaling:DescribeAutoScalingInstances",
          "ec2:DescribeInstances",
          "ec2:DescribeNetworkInterfaces",
          "ec2:DescribeSecurityGroups",
          "ec2:DescribeTags",
          "elasticloadbalancing:DescribeInstanceHealth",
          "elasticloadbalancing:DescribeLoadBalancers",
          "elasticloadbalancing:DescribeTargetGroups",
          "elasticloadbalancing:DescribeTargetHealth",
        ]
        Resource = "*"
      },
      {
        Sid       = "Groups"
        Effect    = "Allow"
        Action    = ["autoscaling:DetachInstances"]
        Resource  = "${local.arn}:autoscaling:${local.region}:${local.account}:autoScalingGroup:*:autoScalingGroupName/*"
        Condition = { StringEquals = local.cluster_tag }
      },
      {
        Sid    = "LoadBalancers"
        Effect = "Allow"
        Action = [
          "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
          "elasticloadbalancing:DeregisterTargets",
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
        Action   = ["sns:Publish"]
        Resource = aws_sns_topic.departures.arn
      },
      {
        # Not for the responder's own calls: Lambda itself writes the function's log.
        Sid      = "Logs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.responder[0].arn}:*"
      },
    ]
  })
}

# This log also has the records for undoing a quarantine: keep it for as long as you may need them.
resource "aws_cloudwatch_log_group" "responder" {
  count = local.responder

  name              = "/aws/lambda/${var.name}-responder"
  retention_in_days = 30
  tags              = local.tags
}

resource "aws_lambda_function" "responder" {
  count = local.responder

  function_name    = "${var.name}-responder"
  description      = "Deregisters, quarantines, mutes and announces a departing machine"
  role             = aws_iam_role.responder[0].arn
  filename         = var.responder_zip
  source_code_hash = filebase64sha256(var.responder_zip)
  runtime          = "nodejs22.x"
  handler          = "index.handler"
  timeout          = 110
  memory_size      = 512
  tags             = local.tags

  environment {
    variables = merge(
      var.responder_environment,
      { LASTCALL_ACTIONS = jsonencode(var.responder_actions) },
      length(var.responder_event_fields) == 0 ? {} : {
        LASTCALL_EVENT_FIELDS = jsonencode(var.responder_event_fields)
      },
      var.responder_managed_tag == null ? {} : {
        LASTCALL_AWS_MANAGED_TAG = var.responder_managed_tag
      },
    )
  }

  depends_on = [aws_cloudwatch_log_group.responder]
}

# An event is useless once its machine is gone.
resource "aws_lambda_function_event_invoke_config" "responder" {
  count = local.responder

  function_name                = aws_lambda_function.responder[0].function_name
  maximum_event_age_in_seconds = 120
  maximum_retry_attempts       = 2
}

resource "aws_cloudwatch_event_rule" "responder" {
  count = local.responder * (var.responder_listens ? 1 : 0)

  name        = "${var.name}-responder"
  description = "Interruptions that the Lastcall responder handles without a controller"
  tags        = local.tags

  event_pattern = jsonencode({
    source        = ["aws.ec2"]
    "detail-type" = ["EC2 Spot Instance Interruption Warning"]
  })
}

resource "aws_cloudwatch_event_target" "responder" {
  count = local.responder * (var.responder_listens ? 1 : 0)

  rule = aws_cloudwatch_event_rule.responder[0].name
  arn  = aws_lambda_function.responder[0].arn
}

resource "aws_lambda_permission" "responder" {
  count = local.responder * (var.responder_listens ? 1 : 0)

  statement_id  = "events"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.responder[0].function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.responder[0].arn
}
