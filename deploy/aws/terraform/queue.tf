# Events of EC2 and Auto Scaling about machines, and changes that AWS Health schedules for them.

resource "aws_sqs_queue" "notices" {
  name = var.name

  # AWS Health announces changes up to two weeks ahead, and its messages wait in the queue.
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue_policy" "notices" {
  queue_url = aws_sqs_queue.notices.url

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.notices.arn
      Condition = {
        ArnEquals = {
          "aws:SourceArn" = [
            aws_cloudwatch_event_rule.machines.arn,
            aws_cloudwatch_event_rule.health.arn,
          ]
        }
      }
    }]
  })
}

resource "aws_cloudwatch_event_rule" "machines" {
  name        = var.name
  description = "Instance events for Lastcall"
  tags        = local.tags

  event_pattern = jsonencode({
    source = ["aws.ec2", "aws.autoscaling"]
    "detail-type" = [
      "EC2 Spot Instance Interruption Warning",
      "EC2 Instance Rebalance Recommendation",
      "EC2 Capacity Reservation Instance Interruption Warning",
      "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
      "EC2 Instance State-change Notification",
      "EC2 Instance-terminate Lifecycle Action",
    ]
  })
}

resource "aws_cloudwatch_event_rule" "health" {
  name        = "${var.name}-health"
  description = "AWS Health events for Lastcall"
  tags        = local.tags

  event_pattern = jsonencode({
    source        = ["aws.health"]
    "detail-type" = ["AWS Health Event"]
    detail        = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
  })
}

resource "aws_cloudwatch_event_target" "machines" {
  rule = aws_cloudwatch_event_rule.machines.name
  arn  = aws_sqs_queue.notices.arn
}

resource "aws_cloudwatch_event_target" "health" {
  rule = aws_cloudwatch_event_rule.health.name
  arn  = aws_sqs_queue.notices.arn
}

# For actions of the type sns, which announce departures.
resource "aws_sns_topic" "departures" {
  name = var.name
  tags = local.tags
}

resource "aws_sns_topic_subscription" "mail" {
  for_each = toset(var.alarm_emails)

  topic_arn = aws_sns_topic.departures.arn
  protocol  = "email"
  endpoint  = each.value
}
