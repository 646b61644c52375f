output "queue_url" {
  description = "For --sqs-queue-url."
  value       = aws_sqs_queue.notices.url
}

output "topic_arn" {
  description = "For actions of the type sns."
  value       = aws_sns_topic.departures.arn
}

output "controller_role_arn" {
  description = "With IRSA: for the ServiceAccount's annotation eks.amazonaws.com/role-arn."
  value       = aws_iam_role.controller.arn
}

output "responder_name" {
  description = "For actions of the type lambda; null if there is no function."
  value       = one(aws_lambda_function.responder[*].function_name)
}
