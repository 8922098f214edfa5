export function forgetConversation(userId: string): void {
  localStorage.removeItem(`millrace.conversation.${userId}`);
}
