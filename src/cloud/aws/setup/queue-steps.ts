/**
 * The steps of `lastcall setup aws --queue`. They use what the script has looked up before, and its
 * functions `look` and `own`.
 */
import { partlyRemoved, unfinishedNow } from "../../setup/shell-script.ts";

/**
 * SQS responds with NonExistentQueue also where there is a queue, "or you do not have access to
 * it". ListQueues tells the two apart: it is granted for all queues of the account and the region
 * or for none. With a page size, the command line tool reads every page.
 */
export const queueLook = `queue_state=missing
queue_url="$(look sqs get-queue-url --queue-name "$queue" --query QueueUrl)"
if [[ "$queue_url" == missing ]]; then
  # The response is the same if there is no access to the queue; the account's list of queues tells.
  found="$(look sqs list-queues --queue-name-prefix "$queue" --page-size 1000 \\
    --query "QueueUrls[?ends_with(@, '/$queue')]")"
  if [[ "$found" == */* ]]; then
    echo "Cannot tell whose the queue $queue is: sqs list-queues has it ($found), but sqs get-queue-url responds that it does not exist, or that there is no access to it; get access to it, or wait a minute if it was just deleted, and run this again" >&2
    exit 1
  fi
else
  queue_state="$(look sqs list-queue-tags --queue-url "$queue_url" --query 'Tags."lastcall-cluster"')"
fi
own "the queue $queue" "$queue_state" \\
  "aws sqs tag-queue --queue-url $queue_url --tags lastcall-cluster=$mark"
for rule in "$queue" "$queue-health"; do
  rule_arn="$(look events describe-rule --name "$rule" --query Arn)"
  rule_state=missing
  if [[ "$rule_arn" != missing ]]; then
    rule_state="$(look events list-tags-for-resource --resource-arn "$rule_arn" \\
      --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
  fi
  own "the rule $rule" "$rule_state" \\
    "aws events tag-resource --resource-arn $rule_arn --tags Key=lastcall-cluster,Value=$mark"
done`;

export const queueStep = `# 3. A queue for this cluster, and the two rules that fill it.
if [[ "$queue_url" == missing ]]; then
  # Without its attributes, this would return the address of an existing queue instead of failing.
  queue_url="$(aws sqs create-queue --queue-name "$queue" --attributes "$queue_attributes" \\
    --tags "lastcall-cluster=$mark" --query QueueUrl --output text)"
else
  aws sqs set-queue-attributes --queue-url "$queue_url" --attributes "$queue_attributes"
fi
for rule in "$queue" "$queue-health"; do
  events="$machine_events"
  if [[ "$rule" == "$queue-health" ]]; then events="$health_events"; fi
  aws events put-rule --name "$rule" --event-pattern "$events" --state ENABLED \\
    --description 'Instance events for Lastcall' \\
    --tags "Key=lastcall-cluster,Value=$mark" >/dev/null
  # put-targets exits with 0 even if it does not add the target.
  failed="$(aws events put-targets --rule "$rule" --targets "Id=lastcall,Arn=$queue_arn" \\
    --query FailedEntryCount --output text)"
  if [[ "$failed" != 0 ]]; then echo "Cannot send events of the rule $rule to $queue_arn" >&2; exit 1; fi
done`;

export const undoQueue = `# 1. The rules, and the queue with its messages.
${unfinishedNow(partlyRemoved("a rule or the queue $queue, the link to the role, and the role $role"))}
for rule in "$queue" "$queue-health"; do
  found="$(look events describe-rule --name "$rule" --query Arn)"
  if [[ "$found" != missing ]]; then
    # A rule of a setup that was interrupted has none.
    target="$(look events list-targets-by-rule --rule "$rule" --query "Targets[?Id=='lastcall'].Id")"
    if [[ "$target" == *lastcall* ]]; then
      aws events remove-targets --rule "$rule" --ids lastcall >/dev/null
    fi
    aws events delete-rule --name "$rule"
  fi
done
if [[ "$queue_url" != missing ]]; then aws sqs delete-queue --queue-url "$queue_url"; fi`;
